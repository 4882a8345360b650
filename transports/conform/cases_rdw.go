package conform

import "github.com/rdmaperf/rdmaperf/transports/rdma"

// RDW: RDMA write.
var rdwCases = []Case{
	{ID: "rdw/sizes", Clause: "IBTA 9.4.3*; RFC 5040 §5.1", Needs: needSendWrite,
		Requirement: "Writes of every length, at odd addresses, change exactly the bytes that they name.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			for i, size := range e.messageSizes() {
				src, dst := c.writing(size + 7)
				src.fill(uint64(i))
				dst.blank()
				c.a.do(write(i, dst.at(3), src.sge(1, size)))
				c.barrier()
				dst.holdsOnly(3, src.data()[1:1+size])
			}
		}},
	{ID: "rdw/passive-target", Clause: "IBTA 9.4.3*; RFC 5040 §5.1", Needs: needWriteRead,
		Requirement: "A write takes effect while the target's application never polls.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			c.b.sleep()
			back := e.region(c.a, "back", 8, e.sinkAccess())
			for i, size := range []int{1, 64, 4096, 300000} {
				src, dst := c.writing(size)
				src.fill(uint64(i))
				for k := range 8 {
					c.a.post(write(k, dst.at(0), src.all()))
				}
				c.a.s.expectOK(0, 8)
				c.readBarrier(dst, back)
				e.equal(dst.name+" while b does not poll", dst.data(), src.data())
			}
		}},
	{ID: "rdw/no-target-completion", Clause: "IBTA 9.4.3*", Needs: needSendWrite,
		Requirement: "A write makes no completion at the target and consumes no receive.", Run: func(e *Env) {
			c, src, dst := e.writing(64)
			own := e.region(c.b, "receive", 64, localOnly)
			own.freeze()
			c.b.postRecv(recv(1, own.all()))
			c.a.doEach(16, func(i int) rdma.SendWR { return write(i, dst.at(0), src.all()) })
			c.a.do(send(16))
			c.b.r.expect(got(1, 0)) // the first receive is still there for the first message
			own.unchanged("by writes")
		}},
	{ID: "rdw/zero-valid", Clause: "IBTA C9-88; RFC 5041 §5.2", Needs: needSendWrite,
		Requirement: "A write of 0 bytes succeeds and changes nothing.", Run: func(e *Env) {
			c, src, dst := e.writing(64)
			dst.fill(1)
			dst.freeze()
			c.a.do(write(1, dst.at(0)), write(2, dst.at(63), src.sge(0, 0)), write(3, dst.at(64), src.sge(64, 0)))
			c.barrier()
			dst.unchanged("by writes of 0 bytes")
			c.works()
		}},
	{ID: "rdw/zero-any-key",
		Clause: "IBTA C9-88; RFC 5041 §5.2: for a message of 0 bytes STag and TO \"MUST NOT be checked\"",
		Needs:  needSendWrite, Requirement: "A write of 0 bytes succeeds whatever its key and address.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			dst := e.region(c.b, "dst", 64, remoteAll)
			gone := e.region(c.b, "gone", 64, remoteAll)
			freed := gone.at(0)
			e.must("close registration", gone.mr.Close())
			dst.fill(1)
			dst.freeze()
			for i, t := range []target{{}, {0, 0xdeadbeef}, {dst.at(0).addr, 0}, freed, dst.at(1 << 20),
				{^uint64(0), dst.mr.RKey()}} {
				c.a.do(write(i, t))
				c.barrier()
			}
			dst.unchanged("by writes of 0 bytes")
		}},
	{ID: "rdw/gather", Clause: "man ibv_post_send", Needs: rdma.Need{Ops: rdma.Ops(rdma.OpWrite, rdma.OpSend), SGE: 2},
		Requirement: "The elements of a write are concatenated at the target.", Run: func(e *Env) {
			c, src, dst := e.writing(8192)
			lens := []int{3, 4096, 1, 1500}[:e.Caps.MaxSGE]
			var g []rdma.SGE
			var sent []byte
			for i, n := range lens {
				off := 4000 - i*1100
				g = append(g, src.sge(off, n))
				sent = append(sent, src.data()[off:off+n]...)
			}
			dst.blank()
			c.a.do(write(1, dst.at(11), g...))
			c.barrier()
			dst.holdsOnly(11, sent)
		}},
	{ID: "rdw/edges", Clause: "IBTA 10.6.6*; RFC 5041 §7.1", Needs: needSendWrite,
		Requirement: "The first and the last byte of a registration can be written.", Run: func(e *Env) {
			c, src, _ := e.writing(5000)
			dst := e.exact(c.b, "dst", src.n, remoteAll)
			c.a.do(write(1, dst.at(0), src.sge(0, 1)), write(2, dst.at(4999), src.sge(4999, 1)))
			c.barrier()
			e.equal(dst.name+": first byte", dst.data()[:1], src.data()[:1])
			e.equal(dst.name+": last byte", dst.data()[4999:], src.data()[4999:])
			e.allBytes(dst.name+": bytes between", dst.data()[1:4999], 0)
			c.writes(src, dst)
		}},
	{ID: "rdw/beyond-end", Clause: "IBTA 9.9.3*, C9-222.1.1; RFC 5041 §7.1, RFC 5040 §8.1.1 (3)", Needs: needWrite,
		Requirement: "A write that reaches beyond the end of a registration is refused, and of one segment not even " +
			"the part inside is placed.",
		Run: func(e *Env) { e.stray(reachesEnd, oneSidedOp{write, accessRefused(0x1101)}) }},
	{ID: "rdw/before-start", Clause: "IBTA 9.9.3*, C9-222.1.1; RFC 5041 §7.1, RFC 5040 §8.1.1 (3)", Needs: needWrite,
		Requirement: "A write that begins before a registration is refused and places nothing.",
		Run:         func(e *Env) { e.stray(reachesStart, oneSidedOp{write, accessRefused(0x1101)}) }},
	{ID: "rdw/address-wrap", Clause: "RFC 5041 §7.1 (TO wrap)", Needs: needWrite,
		Requirement: "A write whose address and length exceed 2^64 is refused.",
		Run:         func(e *Env) { e.stray(reachesWrap, oneSidedOp{write, accessRefused(0x1103, 0x1101)}) }},
}

// stray runs one request per reach against a registration of 1000 bytes, each on a connection of its own: all are
// refused, and the registration and the rest of its page are unchanged.
func (e *Env) stray(reaches []reach, op oneSidedOp) {
	var far *region
	for _, r := range reaches {
		c := e.connect(connOpts{})
		if far == nil {
			far = e.exact(c.b, "far", 1000, remoteAll|rdma.RemoteAtomic)
			far.fill(1)
		}
		near := e.region(c.a, "near", r.n, e.sinkAccess())
		near.fill(2)
		c.noEffect(op.refused, op.build(1, target{r.of(far.mr.Addr()), far.mr.RKey()}, near.all()), near, far)
		far.checkCanaries()
		c.close()
	}
}

type reach struct {
	off      uint64
	n        int
	absolute bool
}

func (r *reach) of(start uint64) uint64 {
	if r.absolute {
		return r.off
	}
	return start + r.off
}

func minus(n uint64) uint64 { return -n }

var (
	reachesEnd = []reach{{off: 1000, n: 1}, {off: 999, n: 2}, {off: 992, n: 16}, {off: 0, n: 1001}, {off: 5000, n: 8},
		{off: 1 << 40, n: 8}}
	reachesStart = []reach{{off: minus(1), n: 1}, {off: minus(8), n: 16}, {off: minus(1), n: 1001},
		{off: minus(4096), n: 8}}
	reachesWrap = []reach{{off: ^uint64(0) - 7, n: 16, absolute: true}, {off: ^uint64(0), n: 2, absolute: true}}
)
