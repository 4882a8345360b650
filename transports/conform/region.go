package conform

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	canarySize = 4096
	canaryByte = 0xC5
)

// region is registered memory of one device: data between two canaries. The registration covers the canaries, so that a
// provider that is off by one really changes them instead of being saved by the bounds check.
type region struct {
	e      *Env
	name   string
	buf    rdma.Buffer
	mr     rdma.MR
	lo, n  int
	tail   []byte // exact regions: the rest of the last page, outside the registration
	frozen []byte
}

func (e *Env) region(x *end, name string, size int, access rdma.Access) *region {
	return e.regionOf(x.dev, x.pd, x.name+"."+name, size, access)
}

func (e *Env) regionOf(dev rdma.Device, pd rdma.PD, name string, size int, access rdma.Access) *region {
	r := e.memory(name, size+2*canarySize)
	r.lo, r.n = canarySize, size
	fillByte(r.buf.Bytes()[:r.lo], canaryByte)
	fillByte(r.buf.Bytes()[r.lo+r.n:], canaryByte)
	r.register(dev, pd, access)
	return r
}

// exact registers size bytes and nothing around them; the rest of the last page is the canary.
func (e *Env) exact(x *end, name string, size int, access rdma.Access) *region {
	r := e.memory(x.name+"."+name, size)
	page := os.Getpagesize()
	if rest := size % page; rest != 0 {
		b := r.buf.Bytes()
		r.tail = unsafe.Slice(&b[0], size+page-rest)[size:]
		fillByte(r.tail, canaryByte)
	}
	r.register(x.dev, x.pd, access)
	return r
}

func (e *Env) memory(name string, size int) *region {
	buf, err := rdma.Alloc(size)
	mustRun(err)
	e.onClose(rankMem, nil, name, buf.Free)
	r := &region{e: e, name: name, buf: buf, n: size}
	e.regions = append(e.regions, r)
	return r
}

func (r *region) register(dev rdma.Device, pd rdma.PD, access rdma.Access) {
	mr, err := dev.RegMR(pd, r.buf, access)
	r.e.must("register "+r.name, err)
	r.mr = mr
	r.e.onClose(rankMR, dev, "registration of "+r.name, mr.Close)
}

func (r *region) data() []byte { return r.buf.Bytes()[r.lo : r.lo+r.n] }

func (r *region) sge(off, n int) rdma.SGE {
	return rdma.SGE{Addr: r.mr.Addr() + uint64(r.lo+off), Len: uint32(n), LKey: r.mr.LKey()}
}

func (r *region) all() rdma.SGE { return r.sge(0, r.n) }

type target struct {
	addr uint64
	key  uint32
}

func (r *region) at(off int) target { return target{r.mr.Addr() + uint64(r.lo+off), r.mr.RKey()} }
func (r *region) fill(seed uint64)  { pattern(r.data(), r.e.salt^seed) }
func (r *region) freeze()           { r.frozen = append(r.frozen[:0], r.data()...) }
func (r *region) holds(b []byte)    { r.e.equal(r.name, r.data(), b) }

// unchanged requires the data to be as frozen: the invariant of every refusal.
func (r *region) unchanged(why string) { r.e.equal(r.name+" unchanged "+why, r.data(), r.frozen) }

func (r *region) checkCanaries() {
	b := r.buf.Bytes()
	r.e.allBytes(r.name+": 4 KiB before the buffer untouched", b[:r.lo], canaryByte)
	r.e.allBytes(r.name+": 4 KiB after the buffer untouched", b[r.lo+r.n:], canaryByte)
	r.e.allBytes(r.name+": rest of the page after the registration untouched", r.tail, canaryByte)
}

func (e *Env) equal(what string, got, want []byte) {
	if bytes.Equal(got, want) {
		return
	}
	if len(got) != len(want) {
		e.failf(what, "%d bytes instead of %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			e.failf(fmt.Sprintf("%s: byte %d of %d is %#02x", what, i, len(want), want[i]), "%#02x", got[i])
		}
	}
}

func (e *Env) allBytes(what string, b []byte, v byte) {
	if bytes.Count(b, []byte{v}) == len(b) {
		return
	}
	for i := range b {
		if b[i] != v {
			e.failf(fmt.Sprintf("%s (%#02x)", what, v), "%#02x at byte %d of %d", b[i], i, len(b))
		}
	}
}

func fillByte(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// pattern fills b so that any shift, swap or repetition of segments shows: every 8 bytes are a hash of their position.
func pattern(b []byte, seed uint64) {
	var w [8]byte
	for i := 0; i < len(b); i += 8 {
		binary.LittleEndian.PutUint64(w[:], mix(seed+uint64(i)))
		copy(b[i:], w[:])
	}
}

func patternOf(n int, seed uint64) []byte {
	b := make([]byte, n)
	pattern(b, seed)
	return b
}

func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
