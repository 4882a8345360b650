package conform

import (
	"fmt"
	"syscall"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// PRT: registrations of a part of a mapping, and of memory that was not allocated here. They are listed with ACC.
var partCases = []Case{
	{ID: "acc/part", Clause: "man ibv_reg_mr", Needs: needWriteRead,
		Requirement: "A part of a mapping is registered alone: the registration tells its address and length, and " +
			"reaches every byte of it.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			for i, p := range parts {
				near, nearAll := e.partial(c.a, fmt.Sprintf("near %d", i), p.off, p.n, e.sinkAccess())
				far, farAll := e.partial(c.b, fmt.Sprintf("far %d", i), p.off, p.n, remoteAll)
				for _, r := range []*region{near, far} {
					if r.mr.Addr() != r.buf.Addr() || r.mr.Len() != uint64(p.n) {
						e.failf(fmt.Sprintf("address %#x, %d bytes", r.buf.Addr(), p.n), "address %#x, %d bytes",
							r.mr.Addr(), r.mr.Len())
					}
				}
				c.bothWays(near, far)
				e.onlyPart(near, nearAll)
				e.onlyPart(far, farAll)
			}
		}},
	{ID: "acc/part-bounds", Clause: "IBTA 10.6.7*; RFC 5041 §7.1", Needs: needWriteRead,
		Requirement: "A registration of a part gives no access to the bytes beside it, though they are mapped and " +
			"registered too.", Run: func(e *Env) {
			const off, n = 4000, 200
			for _, reach := range []struct{ at, n int }{{-1, 1}, {-1, 2}, {-off, 8}, {n, 1}, {n - 1, 2}, {0, n + 1},
				{n + 1000, 8}} {
				for _, op := range oneSided(0x1101, 0x0101) {
					c := e.connect(connOpts{})
					near := e.region(c.a, "near", n+8, e.sinkAccess())
					far, all := e.partial(c.b, "far", off, n, remoteAll)
					// The neighbours are registered as well: their bytes are no more reachable by this key.
					for _, beside := range [][2]int{{0, off}, {off + n, partOf - off - n}} {
						b, err := all.Slice(beside[0], beside[1])
						e.must("slice", err)
						e.register(c.b.dev, c.b.pd, b, remoteAll)
					}
					near.fill(1)
					far.fill(2)
					c.noEffect(op.refused, op.build(1, far.at(reach.at), near.sge(0, reach.n)), near, far)
					e.onlyPart(far, all)
					c.close()
				}
			}
		}},
	{ID: "acc/part-local-bounds", Clause: "IBTA 10.6.6*", Needs: needSend, Without: rdma.FeatKeepsKeys,
		Requirement: "A send of bytes beside a registered part is a local fault.", Run: func(e *Env) {
			const off, n = 4000, 200
			for _, reach := range []struct{ at, n int }{{-1, 1}, {n, 1}, {n - 1, 2}, {-1, n + 2}} {
				c := e.connect(connOpts{})
				src, _ := e.partial(c.a, "src", off, n, localOnly)
				c.localFaultUnseen(send(1, src.sge(reach.at, reach.n)))
			}
		}},
	{ID: "acc/foreign", Clause: "man ibv_reg_mr", Needs: needSendWriteRead,
		Requirement: "Memory that somebody else mapped is registered and used as any other.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			foreign := func(x *end, name string, access rdma.Access) *region {
				raw := anonymous(8192, 0)
				return e.mapped(x, name, raw, raw[100:6100], access)
			}
			near, far := foreign(c.a, "near", e.sinkAccess()), foreign(c.b, "far", remoteAll)
			c.bothWays(near, far)
			near.fill(3)
			c.sends(near, far)
		}},
	{ID: "acc/kept", Clause: "man ibv_reg_mr", Needs: needKept,
		Requirement: "Memory whose registration was closed, and memory that is mapped after it was freed, can be " +
			"registered again and sends its own bytes.", Run: func(e *Env) {
			// A registration kept for memory that is gone would send other bytes.
			c := e.connect(connOpts{})
			dst := e.region(c.b, "dst", 4096, localOnly)
			for n := range e.loops(4, 16) {
				buf, err := rdma.Alloc(4096)
				e.must("allocate", err)
				for range 2 {
					mr := e.register(c.a.dev, c.a.pd, buf, localOnly)
					fillByte(buf.Bytes(), byte(n+1))
					fillByte(dst.data(), 0)
					c.message(send(1, rdma.SGE{Addr: mr.Addr(), Len: 4096, LKey: mr.LKey()}), recv(1, dst.all()))
					e.must("close registration", mr.Close())
					dst.holds(buf.Bytes())
				}
				e.must("free", buf.Free())
			}
		}},
}

var parts = []struct{ off, n int }{{1, 1}, {63, 130}, {4090, 12}, {4096, 4096}, {5000, 7288}}

const partOf = 12288

func (e *Env) partial(x *end, name string, off, n int, access rdma.Access) (part *region, whole rdma.Buffer) {
	w := e.memory(x.name+"."+name+" around", partOf)
	fillByte(w.buf.Bytes(), canaryByte)
	buf, err := w.buf.Slice(off, n)
	e.must("slice", err)
	part = &region{e: e, name: x.name + "." + name, buf: buf, n: n}
	part.register(x.dev, x.pd, access)
	e.regions = append(e.regions, part)
	return part, w.buf
}

func (e *Env) onlyPart(r *region, whole rdma.Buffer) {
	off := r.buf.Offset()
	e.allBytes(r.name+": bytes before the part untouched", whole.Bytes()[:off], canaryByte)
	e.allBytes(r.name+": bytes after the part untouched", whole.Bytes()[off+r.n:], canaryByte)
}

func anonymous(n, flags int) []byte {
	raw, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON|flags)
	mustRun(err)
	return raw
}

func (e *Env) mapped(x *end, name string, raw, part []byte, access rdma.Access) *region {
	buf, err := rdma.Foreign(part)
	if err != nil {
		syscall.Munmap(raw)
		panic(halt{err})
	}
	e.onClose(rankMem, nil, name, func() error {
		if err := buf.Free(); err != nil {
			return err
		}
		return syscall.Munmap(raw)
	})
	r := &region{e: e, name: x.name + "." + name, buf: buf, n: len(part)}
	r.register(x.dev, x.pd, access)
	return r
}
