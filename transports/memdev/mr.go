package memdev

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type mr struct {
	dev        *Device
	pd         rdma.PD
	mem        []byte
	base       uint64
	access     rdma.Access
	lkey, rkey uint32
	closed     bool
}

// RegMR registers the buffer. Fails with ErrInvalid for an unknown domain, a
// buffer that is not mapped, or rights that ibv_reg_mr(3) forbids.
func (d *Device) RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	fail := func(err error) (rdma.MR, error) {
		return nil, &rdma.OpError{Op: "register", Object: fmt.Sprintf("%d bytes", buf.Len()), Err: err}
	}
	rights := access
	if d.fab.cfg.OnDemand {
		rights &^= rdma.OnDemand
	}
	if err := rights.Validate(); err != nil {
		return fail(err)
	}
	if buf.Len() == 0 || rdma.BufferAt(buf.Addr(), buf.Len()) == nil {
		return fail(rdma.ErrInvalid)
	}
	if err := buf.Permits(access); err != nil {
		return fail(err)
	}
	d.fab.lock()
	defer d.fab.unlock()
	if err := d.alive(); err != nil {
		return fail(err)
	}
	if !d.use(pd) {
		return fail(rdma.ErrInvalid)
	}
	m := &mr{dev: d, pd: pd, mem: buf.Bytes(), base: buf.Addr(), access: access,
		lkey: newKey(d.lkeys), rkey: newKey(d.rkeys)}
	d.lkeys[m.lkey] = m
	d.rkeys[m.rkey] = m
	return m, nil
}

// newKey takes the system's generator whatever the seed: a peer must not predict keys (RFC 5040 §8.1.1).
func newKey(used map[uint32]*mr) uint32 {
	var b [4]byte
	for {
		rand.Read(b[:])
		if k := binary.NativeEndian.Uint32(b[:]); k != 0 && used[k] == nil {
			return k
		}
	}
}

func (m *mr) LKey() uint32        { return m.lkey }
func (m *mr) RKey() uint32        { return m.rkey }
func (m *mr) Addr() uint64        { return m.base }
func (m *mr) Len() uint64         { return uint64(len(m.mem)) }
func (m *mr) Access() rdma.Access { return m.access }

// at is nil when a byte is outside. The distance to the end is compared, so no sum can wrap (RFC 5041 §7.1).
func (m *mr) at(addr, n uint64) []byte {
	size := uint64(len(m.mem))
	if addr < m.base || addr-m.base > size || n > size-(addr-m.base) {
		return nil
	}
	off := addr - m.base
	return m.mem[off : off+n : off+n]
}

// revoke makes both keys useless. Placement happens under the fabric's lock, so none is in progress when it returns.
func (m *mr) revoke() {
	if m.dev.rkeys[m.rkey] != m {
		return
	}
	delete(m.dev.lkeys, m.lkey)
	delete(m.dev.rkeys, m.rkey)
	if m.dev.fab.faults.armed(FaultAcceptOldKey) {
		m.dev.stale[m.rkey] = m
	}
}

// Close revokes the keys and forgets the memory.
func (m *mr) Close() error {
	m.dev.fab.lock()
	defer m.dev.fab.unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	m.revoke()
	m.dev.release(m.pd)
	return nil
}

// local finds what an SGE names: key, domain, bounds and rights must all fit (IBTA 10.6.3).
func (d *Device) local(pd rdma.PD, s *rdma.SGE, n uint64, need rdma.Access) []byte {
	m := d.lkeys[s.LKey]
	if m == nil {
		return nil
	}
	if (m.pd != pd || !m.access.Has(need)) && !d.fab.faults.hit(FaultSkipAccessCheck, d) {
		return nil
	}
	return m.at(s.Addr, n)
}

// remote checks key, domain, bounds, and rights of registration and QP (IBTA 9.7.4.1.5, RFC 5040 §8.1.1).
func (q *qp) remote(key uint32, addr, n uint64, need rdma.Access) (s span, ok bool) {
	d := q.dev
	faults := &d.fab.faults
	m := d.rkeys[key]
	if m == nil {
		m = d.stale[key]
		if m == nil || !faults.hit(FaultAcceptOldKey, d) {
			return s, false
		}
		// The memory may be gone: touch it only if it is still mapped.
		s.add(rdma.BufferAt(addr, int(n)))
		return s, true
	}
	if (m.pd != q.pd || !m.access.Has(need) || !q.access.Has(need)) && !faults.hit(FaultSkipAccessCheck, d) {
		return s, false
	}
	mem := m.at(addr, n)
	if mem == nil {
		if !faults.hit(FaultSkipBoundsCheck, d) {
			return s, false
		}
		mem = m.wild(addr, n)
	}
	s.add(mem)
	return s, true
}

// wild is what FaultSkipBoundsCheck may touch: bytes of one live Buffer, or what is inside the registration.
func (m *mr) wild(addr, n uint64) []byte {
	if b := rdma.BufferAt(addr, int(n)); b != nil {
		return b
	}
	return m.inside(addr, n)
}

func (m *mr) inside(addr, n uint64) []byte {
	size := uint64(len(m.mem))
	if addr < m.base || addr-m.base >= size {
		return nil
	}
	return m.at(addr, min(n, size-(addr-m.base)))
}
