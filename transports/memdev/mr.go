package memdev

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

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

// span is a scatter or gather list that passed its checks: ranges of mapped memory, none of them empty.
type span struct {
	part [rdma.MaxSGE][]byte
	n    int
	size int
}

func (s *span) add(b []byte) {
	if len(b) > 0 {
		s.part[s.n] = b
		s.n++
		s.size += len(b)
	}
}

// at is byte i of the span, 0 ≤ i < size.
func (s *span) at(i int) *byte {
	p := 0
	for i >= len(s.part[p]) {
		i -= len(s.part[p])
		p++
	}
	return &s.part[p][i]
}

// place returns the bytes copied. The last byte becomes visible after all others (rdma.FeatLastByteLast).
func place(dst, src *span) int {
	n := min(dst.size, src.size)
	if n == 0 {
		return 0
	}
	// The end is read before the copy, as spans may overlap, and by word, so that nobody sees half a word.
	from, to := src.word(n), dst.word(n)
	whole := from != nil && to != nil
	var lastWord uint64
	var last byte
	tail := 1
	if whole {
		lastWord, tail = atomic.LoadUint64(from), 8
	} else {
		last = *src.at(n - 1)
	}
	var di, do, si, so int
	for left := n - tail; left > 0; {
		d, s := dst.part[di][do:], src.part[si][so:]
		c := copy(d[:min(len(d), left)], s)
		left -= c
		if do += c; do == len(dst.part[di]) {
			di, do = di+1, 0
		}
		if so += c; so == len(src.part[si]) {
			si, so = si+1, 0
		}
	}
	if whole {
		atomic.StoreUint64(to, lastWord)
	} else {
		storeByte(dst.at(n-1), last)
	}
	return n
}

// word is the aligned 8 bytes that end at byte n of the span, or nil when they are not aligned or lie in two parts.
func (s *span) word(n int) *uint64 {
	if n < 8 {
		return nil
	}
	first, last := unsafe.Pointer(s.at(n-8)), unsafe.Pointer(s.at(n-1))
	if uintptr(first)&7 != 0 || uintptr(last)-uintptr(first) != 7 {
		return nil
	}
	return (*uint64)(first)
}

// storeByte publishes one byte to rdma.LoadByte; a neighbour's store to the word makes the compare-and-swap try again.
func storeByte(p *byte, v byte) {
	addr := uintptr(unsafe.Pointer(p))
	word, i := (*uint32)(unsafe.Pointer(uintptr(unsafe.Pointer(p))&^3)), addr&3
	for {
		old := atomic.LoadUint32(word)
		next := old
		(*[4]byte)(unsafe.Pointer(&next))[i] = v
		if atomic.CompareAndSwapUint32(word, old, next) {
			return
		}
	}
}

// fetch executes an atomic and returns the old value; it is atomic for the application's sync/atomic too.
func fetch(wr *rdma.SendWR, mem []byte) uint64 {
	word := (*uint64)(unsafe.Pointer(unsafe.SliceData(mem)))
	if wr.Op == rdma.OpFetchAdd {
		return atomic.AddUint64(word, wr.CompareAdd) - wr.CompareAdd
	}
	for {
		old := atomic.LoadUint64(word)
		if old != wr.CompareAdd || atomic.CompareAndSwapUint64(word, old, wr.Swap) {
			return old
		}
	}
}
