package iwarp

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// mr is a registration. LKey and RKey are the same STag.
type mr struct {
	dev    *Device
	buf    []byte
	base   uint64
	stag   uint32
	pd     rdma.PD
	access rdma.Access
	valid  atomic.Bool // false once invalidated or closed
	closed atomic.Bool
}

type keyTable struct {
	mu sync.RWMutex
	m  map[uint32]*mr
	n  int // open registrations, invalidated ones included
}

func (t *keyTable) init() { t.m = map[uint32]*mr{} }

func (t *keyTable) find(stag uint32) *mr {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.m[stag]
}

func (t *keyTable) open() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.n
}

// add gives m a fresh STag, random so that no peer guesses it (RFC 5040 §8.1.1, RFC 5042 §6.2.2); old peers choke on 0.
func (t *keyTable) add(m *mr) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for {
		var b [4]byte
		if _, err := rand.Read(b[:]); err != nil {
			return err
		}
		stag := binary.NativeEndian.Uint32(b[:])
		if _, taken := t.m[stag]; stag == 0 || taken {
			continue
		}
		m.stag = stag
		t.m[stag] = m
		t.n++
		return nil
	}
}

// RegMR registers the buffer.
func (d *Device) RegMR(pd rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	fail := func(err error) (rdma.MR, error) {
		return nil, &rdma.OpError{Op: "register", Object: fmt.Sprintf("%d bytes", buf.Len()), Err: err}
	}
	if buf.Len() == 0 {
		return fail(rdma.ErrInvalid)
	}
	if err := access.Validate(); err != nil {
		return fail(err)
	}
	if err := buf.Permits(access); err != nil {
		return fail(err)
	}
	if err := d.usePD(pd, 1); err != nil {
		return fail(err)
	}
	m := &mr{dev: d, buf: buf.Bytes(), base: buf.Addr(), pd: pd, access: access}
	m.valid.Store(true)
	if err := d.keys.add(m); err != nil {
		d.usePD(pd, -1)
		return fail(err)
	}
	return m, nil
}

func (m *mr) LKey() uint32        { return m.stag }
func (m *mr) RKey() uint32        { return m.stag }
func (m *mr) Addr() uint64        { return m.base }
func (m *mr) Len() uint64         { return uint64(len(m.buf)) }
func (m *mr) Access() rdma.Access { return m.access }

// invalidate revokes the key; the registration still has to be closed.
func (m *mr) invalidate() { m.valid.Store(false) }

// Close revokes the key and waits until no QP is touching the memory.
func (m *mr) Close() error {
	if m.closed.Swap(true) {
		return nil
	}
	m.valid.Store(false)
	m.dev.keys.mu.Lock()
	delete(m.dev.keys.m, m.stag)
	m.dev.keys.n--
	m.dev.keys.mu.Unlock()
	m.dev.everyQP(func(q *qp) { q.forget(m) })
	m.dev.usePD(m.pd, -1)
	return nil
}

// at is n octets at addr, or nil when they are not all inside. n may be 0.
func (m *mr) at(addr uint64, n uint32) []byte {
	off := addr - m.base
	if addr < m.base || off > uint64(len(m.buf)) || uint64(n) > uint64(len(m.buf))-off {
		return nil
	}
	return m.buf[off : off+uint64(n) : off+uint64(n)]
}
