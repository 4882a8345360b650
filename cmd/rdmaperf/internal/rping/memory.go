package rping

import (
	"errors"

	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// memory is what connections of one side take their registrations from. What has no remote rights stays registered; a
// key that was sent to a peer ends with its connection.
type memory struct {
	dev   rdma.Device
	pd    rdma.PD
	cache *regcache.Cache
	scope *regcache.Scope
	store *regcache.Store
}

// kept bounds the memory that a server keeps behind its clients. Arbitrary: 16 of the longest pings.
const kept = 1 << 20

type registration struct {
	buf    rdma.Buffer
	region *regcache.Region
}

const remoteRights = rdma.RemoteRead | rdma.RemoteWrite | rdma.RemoteAtomic | rdma.RemoteInvalidate

func newMemory(dev rdma.Device) (*memory, error) {
	pd, err := dev.AllocPD()
	if err != nil {
		return nil, err
	}
	m := &memory{dev: dev, pd: pd, store: regcache.NewStore(regcache.StoreConfig{Keep: kept})}
	// All memory is package rdma's own: nothing unmaps it unseen.
	if m.cache, err = regcache.New(dev, regcache.Config{Source: regcache.SourceArena}); err == nil {
		m.scope, err = m.cache.Scope(pd)
	}
	if err != nil {
		return nil, errors.Join(err, m.close())
	}
	return m, nil
}

// take is size bytes with the rights, and with bytes of an earlier connection in them.
func (m *memory) take(size int, access rdma.Access) (r registration, err error) {
	if r.buf, err = m.store.Alloc(size); err != nil {
		return r, err
	}
	if r.region, err = m.scope.Get(r.buf, access); err != nil {
		return registration{}, errors.Join(err, m.store.Free(r.buf))
	}
	if access&remoteRights != 0 { // the peer may read what lies there, and sees its own only
		clear(r.buf.Bytes())
	}
	return r, nil
}

func (m *memory) give(r registration) error {
	end := r.region.Put
	if r.region.Access()&remoteRights != 0 {
		end = r.region.Revoke
	}
	return errors.Join(end(), m.store.Free(r.buf))
}

func (m *memory) close() error {
	var errs []error
	if m.cache != nil {
		errs = append(errs, m.cache.Close())
	}
	return errors.Join(append(errs, m.dev.FreePD(m.pd), m.store.Close())...)
}
