package sched

import (
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// keyring are the registrations that the tier copies into: it checks for those bytes what the device below checks for
// others. A key that a request revoked is not found out.
type keyring struct {
	mu sync.RWMutex // held for reading while the tier copies
	by map[uint32]*ownedMR
}

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
