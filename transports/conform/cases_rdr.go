package conform

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// RDR: RDMA read.
var rdrCases = []Case{
	{ID: "rdr/sizes", Clause: "IBTA 9.4.4*; RFC 5040 §5.2", Needs: needRead,
		Requirement: "Reads of every length, at odd addresses, fetch exactly the bytes that they name.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			for i, size := range e.messageSizes() {
				src, sink := c.reading(size + 7)
				src.fill(uint64(i))
				sink.blank()
				c.a.do(read(i, src.at(3), sink.sge(5, size)))
				sink.holdsOnly(5, src.data()[3:3+size])
			}
		}},
	{ID: "rdr/passive-target", Clause: "IBTA 9.4.4*; RFC 5040 §5.2", Needs: needRead,
		Requirement: "A read is answered while the target's application never polls.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			c.b.sleep()
			for i, size := range []int{1, 64, 4096, 300000} {
				src, sink := c.reading(size)
				for k := range 8 {
					src.fill(uint64(8*i + k))
					c.a.do(read(k, src.at(0), sink.all()))
					e.equal(sink.name+" while b does not poll", sink.data(), src.data())
				}
			}
		}},
	{ID: "rdr/zero", Clause: "IBTA C9-88; RFC 5040 §7.2", Needs: needRead,
		Requirement: "A read of 0 bytes succeeds whatever its key and address, and changes nothing.",
		Run: func(e *Env) {
			c, src, sink := e.reading(64)
			sink.fill(1)
			sink.freeze()
			for i, t := range []target{src.at(0), src.at(64), {}, {0, 0xdeadbeef}, src.at(1 << 20)} {
				c.a.do(read(i, t, sink.sge(8, 0)))
			}
			c.a.do(read(9, src.at(0)))
			sink.unchanged("by reads of 0 bytes")
			c.works()
		}},
	{ID: "rdr/scatter", Clause: "man ibv_query_device (max_sge_rd)",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpRead), Features: rdma.FeatReadMultiSGE, SGE: 2},
		Requirement: "A read fills several elements one after the other.", Run: func(e *Env) {
			c, src, sink := e.reading(16384)
			sink.blank()
			want, rest := bytes.Clone(sink.data()), src.data()[1:]
			var g []rdma.SGE
			for i, n := range []int{5, 1, 4097, 300}[:min(4, e.Caps.MaxReadSGE)] {
				off := 15000 - i*4500
				g = append(g, sink.sge(off, n))
				rest = rest[copy(want[off:off+n], rest):]
			}
			c.a.do(read(1, src.at(1), g...))
			sink.holds(want)
		}},
	{ID: "rdr/sink-read-only", Clause: "IBTA 10.6.6*; man ibv_reg_mr", Needs: needRead,
		Requirement: "A read into a registration without local write is refused and the sink is unchanged.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.b, "src", 64, remoteAll)
			sink := e.region(c.a, "sink", 64, 0)
			src.fill(1)
			c.localFault(read(1, src.at(0), sink.all()), sink, rdma.StatusLocAccessErr)
		}},
	{ID: "rdr/sink-local-write", Clause: "man ibv_reg_mr", Needs: needRead, Without: rdma.FeatSinkNeedsRemoteWrite,
		Requirement: "A sink needs local write and nothing more.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.b, "src", 64, rdma.RemoteRead)
			sink := e.region(c.a, "sink", 64, rdma.LocalWrite)
			src.fill(1)
			c.reads(src, sink)
		}},
	{ID: "rdr/sink-remote-write", Clause: "RDMAC verbs 1.0 §8.1*; libfabric PR 1707",
		Needs: rdma.Need{Ops: rdma.Ops(rdma.OpRead), Features: rdma.FeatSinkNeedsRemoteWrite},
		Requirement: "On a device that wants remote write for a sink, a read into a sink with it works, and one " +
			"without it is refused cleanly if at all.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.b, "src", 64, rdma.RemoteRead)
			sink := e.region(c.a, "sink", 64, rdma.LocalWrite|rdma.RemoteWrite)
			plain := e.region(c.a, "plain", 64, rdma.LocalWrite)
			src.fill(1)
			plain.freeze()
			c.reads(src, sink)
			_, err := c.a.tryPost(read(2, src.at(0), plain.all()))
			if err != nil {
				plain.unchanged("by a refused read")
				c.works()
				return
			}
			if wc := c.a.s.next("read without remote write"); wc.Status != rdma.StatusSuccess {
				e.Note("%s", wc.Status)
				plain.unchanged("by a refused read")
			}
		}},
	{ID: "rdr/no-remote-read", Clause: "IBTA 9.9.3*, C9-222.1.1; RFC 5040 §7.2", Needs: needRead,
		Requirement: "A read of a registration without remote read is refused and the sink is unchanged.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			near, far := c.nearFar(64, rdma.LocalWrite|rdma.RemoteWrite)
			c.noEffect(accessRefused(0x0102), read(1, far.at(0), near.all()), near)
		}},
	{ID: "rdr/beyond-end", Clause: "IBTA 9.9.3*; RFC 5040 §7.2 (4d), §8.1.1 (3)", Needs: needRead,
		Requirement: "A read that reaches beyond the end of a registration is refused and delivers nothing.",
		Run:         func(e *Env) { e.stray(reachesEnd, oneSidedOp{read, accessRefused(0x0101)}) }},
	{ID: "rdr/before-start", Clause: "IBTA 9.9.3*; RFC 5040 §7.2 (4c), §8.1.1 (3)", Needs: needRead,
		Requirement: "A read that begins before a registration is refused and delivers nothing.",
		Run:         func(e *Env) { e.stray(reachesStart, oneSidedOp{read, accessRefused(0x0101)}) }},
	{ID: "rdr/address-wrap", Clause: "RFC 5040 §7.2 (4e)", Needs: needRead,
		Requirement: "A read whose address and length exceed 2^64 is refused.",
		Run:         func(e *Env) { e.stray(reachesWrap, oneSidedOp{read, accessRefused(0x0104, 0x0101)}) }},
	{ID: "rdr/overlapping-sinks", Clause: "IBTA 10.8.5*; RFC 5040 §5.5 (3) leaves it open", Needs: needRead,
		Requirement: "Of two reads into one sink, the later holds when both have completed. iWARP may place them in " +
			"any order: there it is recorded.", Run: func(e *Env) {
			const size = 2000
			c := e.connect(connOpts{})
			one := e.region(c.b, "one", size, remoteAll)
			two := e.region(c.b, "two", size, remoteAll)
			sink := e.region(c.a, "sink", size, e.sinkAccess())
			for i := range e.loops(50, 2000) {
				one.fill(uint64(2 * i))
				two.fill(uint64(2*i + 1))
				c.a.do(read(1, one.at(0), sink.all()), read(2, two.at(0), sink.all()))
				e.lastHolds(sink, one.data(), two.data())
			}
		}},
	{ID: "rdr/empty-among-others", Clause: "RFC 5040 §4.4, §5.5 (12)",
		Needs: rdma.Need{Ops: rdma.Ops(rdma.OpWrite, rdma.OpRead), Features: rdma.FeatEmptyRead},
		Requirement: "A read without elements is answered in its turn among writes and other reads, and its answer " +
			"proves that what was written before it has arrived.", Run: func(e *Env) {
			const size = 50000
			c, src, dst := e.writing(size)
			sink := e.region(c.a, "sink", size, e.sinkAccess())
			for i := range e.loops(50, 1000) {
				src.fill(uint64(i))
				c.a.post(write(1, dst.at(0), src.all()), read(2, target{}), read(3, dst.at(0), sink.all()),
					read(4, target{}))
				c.a.s.expect(ok(1), ok(2))
				e.equal(dst.name+" at the answer of an empty read behind the write", dst.data(), src.data())
				c.a.s.expect(ok(3), ok(4))
				sink.holds(src.data())
			}
		}},
	{ID: "rdr/ird-zero", Clause: "IBTA 9.7*; RFC 5040 §6.1", Needs: needRead,
		Requirement: "A read towards a peer that takes none is refused, at once or by the peer, and the sink is " +
			"unchanged.", Run: func(e *Env) {
			take := rdma.ConnParam{IRD: 0, ORD: 0, RNRRetry: 7}
			c := e.connect(connOpts{accept: &take})
			e.Note("negotiated ORD %d", c.pa.ORD)
			src, sink := c.reading(64)
			sink.freeze()
			if _, err := c.a.tryPost(read(1, src.at(0), sink.all())); err != nil {
				e.refusedWith("read with ORD 0", err, rdma.ErrInvalid, rdma.ErrState, rdma.ErrNotSupported)
				sink.unchanged("by a refused read")
				c.works()
				return
			}
			c.a.s.expect(sendFails(1, append([]rdma.Status{rdma.StatusLocQPOpErr}, lateRefusal...)...))
			c.a.waitState(rdma.QPErr)
			sink.unchanged("by a refused read")
		}},
	{ID: "rdr/no-partial-answer", Clause: "RFC 5040 §7.2", Needs: needRead,
		Requirement: "A read of more than the registration holds is refused before the first byte of an answer.",
		Run: func(e *Env) {
			for _, size := range []int{10001, 200000} {
				c := e.connect(connOpts{})
				src := e.exact(c.b, "src", 10000, remoteAll)
				sink := e.region(c.a, "sink", size, e.sinkAccess())
				src.fill(1)
				sink.blank()
				c.refuses(c.a, accessRefused(0x0101), read(1, src.at(0), sink.all()))
				e.allBytes(sink.name+" unchanged by a refused read", sink.data(), blank)
			}
		}},
	{ID: "rdr/changing-source", Clause: "RFC 5040 §5.5 (8) and IBTA leave it open", Level: May, Needs: needRead,
		Requirement: "A read of memory that its owner keeps changing returns every aligned 8 bytes as they were at " +
			"some moment.", Run: func(e *Env) {
			const words = 512
			c, src, sink := e.reading(8 * words)
			const x, y = 0x1111111111111111, 0xeeeeeeeeeeeeeeee
			set := func(v uint64) {
				for i := range words {
					atomic.StoreUint64((*uint64)(unsafe.Pointer(&src.data()[8*i])), v)
				}
			}
			set(x)
			var stop atomic.Bool
			writer := e.start("writer", func() error {
				for !stop.Load() && e.ctx.Err() == nil {
					set(x)
					set(y)
				}
				return nil
			})
			torn := 0
			for i := range e.loops(200, 5000) {
				c.a.do(read(i, src.at(0), sink.all()))
				for w := range words {
					if v := binary.NativeEndian.Uint64(sink.data()[8*w:]); v != x && v != y {
						torn++
					}
				}
			}
			stop.Store(true)
			mustRun(e.await(writer))
			if torn > 0 {
				e.failf("aligned 8 bytes as they were at some moment", "%d torn words", torn)
			}
		}},
}
