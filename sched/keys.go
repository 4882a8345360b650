package sched

import (
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// keyring are the registrations of a device whose tier copies into receives: what the device below checks for the bytes
// that it places, the tier checks for the others. A key that was revoked by a request is not found out here.
type keyring struct {
	mu sync.RWMutex // held for reading while the tier copies
	by map[uint32]*ownedMR
}

// ownedMR is a registration that the keyring knows.
type ownedMR struct {
	rdma.MR
	pd   rdma.PD
	keys *keyring
}

func (k *keyring) add(pd rdma.PD, mr rdma.MR) rdma.MR {
	o := &ownedMR{mr, pd, k}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.by == nil {
		k.by = map[uint32]*ownedMR{}
	}
	k.by[mr.LKey()] = o
	return o
}

// Close revokes the keys. The tier copies nothing there any more when it returns.
func (o *ownedMR) Close() error {
	if err := o.MR.Close(); err != nil {
		return err
	}
	o.keys.mu.Lock()
	defer o.keys.mu.Unlock()
	if key := o.LKey(); o.keys.by[key] == o {
		delete(o.keys.by, key)
	}
	return nil
}

// writable reports whether the tier may write an element of a receive. The caller holds mu.
func (k *keyring) writable(pd rdma.PD, e *rdma.SGE) bool {
	o := k.by[e.LKey]
	return o != nil && o.pd == pd && o.Access().Has(rdma.LocalWrite) &&
		e.Addr >= o.Addr() && uint64(e.Len) <= o.Len() && e.Addr-o.Addr() <= o.Len()-uint64(e.Len) &&
		rdma.BufferAt(e.Addr, int(e.Len)) != nil
}
