package conform

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// RDR: RDMA read.
var rdrCases = []Case{
	{ID: "rdr/sizes", Clause: "IBTA 9.4.4; RFC 5040 §5.2", Unchecked: "IBTA 9.4.4", Needs: needRead,
		Requirement: "Reads of every length, at odd addresses, fetch exactly the bytes that they name.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			for i, size := range e.messageSizes() {
				src := e.region(c.b, fmt.Sprintf("src%d", size), size+3, remoteAll)
				sink := e.region(c.a, fmt.Sprintf("sink%d", size), size+7, e.sinkAccess())
				src.fill(uint64(i))
				fillByte(sink.data(), 0x33)
				c.a.post(read(i, src.at(3), sink.sge(5, size)))
				c.a.s.expect(ok(i))
				e.equal(sink.name, sink.data()[5:5+size], src.data()[3:])
				e.allBytes(sink.name+": bytes before", sink.data()[:5], 0x33)
				e.allBytes(sink.name+": bytes behind", sink.data()[5+size:], 0x33)
			}
		}},
	{ID: "rdr/passive-target", Clause: "IBTA 9.4.4; RFC 5040 §5.2", Unchecked: "IBTA 9.4.4", Needs: needRead,
		Requirement: "A read is answered while the target's application never polls.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			c.b.sleep()
			for i, size := range []int{1, 64, 4096, 300000} {
				src := e.region(c.b, fmt.Sprintf("src%d", size), size, remoteAll)
				sink := e.region(c.a, fmt.Sprintf("sink%d", size), size, e.sinkAccess())
				for k := range 8 {
					src.fill(uint64(8*i + k))
					c.a.post(read(k, src.at(0), sink.all()))
					c.a.s.expect(ok(k))
					e.equal(sink.name+" while b does not poll", sink.data(), src.data())
				}
			}
		}},
	{ID: "rdr/zero", Clause: "IBTA C9-88; RFC 5040 §7.2", Needs: needRead,
		Requirement: "A read of 0 bytes succeeds whatever its key and address, and changes nothing.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.b, "src", 64, remoteAll)
			sink := e.region(c.a, "sink", 64, e.sinkAccess())
			sink.fill(1)
			sink.freeze()
			for i, t := range []target{src.at(0), src.at(64), {}, {0, 0xdeadbeef}, {src.at(0).addr + 1<<20, src.mr.RKey()}} {
				c.a.post(read(i, t, sink.sge(8, 0)))
				c.a.s.expect(ok(i))
			}
			c.a.post(read(9, src.at(0)))
			c.a.s.expect(ok(9))
			sink.unchanged("by reads of 0 bytes")
			c.works()
		}},
	{ID: "rdr/scatter", Clause: "man ibv_query_device (max_sge_rd)",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpRead), Features: rdma.FeatReadMultiSGE, SGE: 2},
		Requirement: "A read fills several elements one after the other.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.b, "src", 8192, remoteAll)
			sink := e.region(c.a, "sink", 16384, e.sinkAccess())
			src.fill(1)
			fillByte(sink.data(), 0x33)
			lens := []int{5, 1, 4097, 300}[:min(4, e.Caps.MaxReadSGE)]
			var g []rdma.SGE
			total := 0
			for i, n := range lens {
				g = append(g, sink.sge(15000-i*4500, n))
				total += n
			}
			c.a.post(read(1, src.at(1), g...))
			c.a.s.expect(ok(1))
			at := 1
			for i, n := range lens {
				off := 15000 - i*4500
				e.equal(fmt.Sprintf("%s: element %d", sink.name, i), sink.data()[off:off+n], src.data()[at:at+n])
				fillByte(sink.data()[off:off+n], 0x33)
				at += n
			}
			e.allBytes(sink.name+": bytes outside the elements", sink.data(), 0x33)
		}},
	{ID: "rdr/sink-read-only", Clause: "IBTA 10.6.6; man ibv_reg_mr", Unchecked: "IBTA 10.6.6", Needs: needRead,
		Requirement: "A read into a registration without local write is refused and the sink is unchanged.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.b, "src", 64, remoteAll)
			sink := e.region(c.a, "sink", 64, 0)
			src.fill(1)
			sink.freeze()
			if c.a.localFault(read(1, src.at(0), sink.all()), rdma.StatusLocAccessErr) {
				c.works()
			}
			sink.unchanged("without local write")
		}},
	{ID: "rdr/sink-local-write", Clause: "man ibv_reg_mr", Needs: needRead, Without: rdma.FeatSinkNeedsRemoteWrite,
		Requirement: "A sink needs local write and nothing more.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.b, "src", 64, rdma.RemoteRead)
			sink := e.region(c.a, "sink", 64, rdma.LocalWrite)
			src.fill(1)
			c.a.post(read(1, src.at(0), sink.all()))
			c.a.s.expect(ok(1))
			e.equal(sink.name, sink.data(), src.data())
		}},
	{ID: "rdr/sink-remote-write", Clause: "RDMAC verbs 1.0 §8.1; libfabric PR 1707", Unchecked: "RDMAC verbs 1.0 §8.1",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpRead), Features: rdma.FeatSinkNeedsRemoteWrite},
		Requirement: "On a device that wants remote write for a sink, a read into a sink with it works, and one without it is refused cleanly if at all.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.b, "src", 64, rdma.RemoteRead)
			sink := e.region(c.a, "sink", 64, rdma.LocalWrite|rdma.RemoteWrite)
			plain := e.region(c.a, "plain", 64, rdma.LocalWrite)
			src.fill(1)
			plain.freeze()
			c.a.post(read(1, src.at(0), sink.all()))
			c.a.s.expect(ok(1))
			e.equal(sink.name, sink.data(), src.data())
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
	{ID: "rdr/no-remote-read", Clause: "IBTA 9.9.3, C9-222.1.1; RFC 5040 §7.2", Unchecked: "IBTA 9.9.3", Needs: needRead,
		Requirement: "A read of a registration without remote read is refused and the sink is unchanged.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.b, "src", 64, rdma.LocalWrite|rdma.RemoteWrite)
			sink := e.region(c.a, "sink", 64, e.sinkAccess())
			src.fill(1)
			sink.freeze()
			c.refuses(c.a, accessRefused(0x0102), read(1, src.at(0), sink.all()))
			sink.unchanged("by a refused read")
		}},
	{ID: "rdr/beyond-end", Clause: "IBTA 9.9.3; RFC 5040 §7.2 (4d), §8.1.1 (3)", Unchecked: "IBTA 9.9.3", Needs: needRead,
		Requirement: "A read that reaches beyond the end of a registration is refused and delivers nothing.",
		Run: func(e *Env) {
			e.stray(reachesEnd, accessRefused(0x0101), func(t target, g rdma.SGE) rdma.SendWR { return read(1, t, g) })
		}},
	{ID: "rdr/before-start", Clause: "IBTA 9.9.3; RFC 5040 §7.2 (4c), §8.1.1 (3)", Unchecked: "IBTA 9.9.3", Needs: needRead,
		Requirement: "A read that begins before a registration is refused and delivers nothing.",
		Run: func(e *Env) {
			e.stray(reachesStart, accessRefused(0x0101), func(t target, g rdma.SGE) rdma.SendWR { return read(1, t, g) })
		}},
	{ID: "rdr/address-wrap", Clause: "RFC 5040 §7.2 (4e)", Needs: needRead,
		Requirement: "A read whose address and length exceed 2^64 is refused.",
		Run: func(e *Env) {
			e.stray(reachesWrap, accessRefused(0x0104, 0x0101), func(t target, g rdma.SGE) rdma.SendWR { return read(1, t, g) })
		}},
	{ID: "rdr/overlapping-sinks", Clause: "IBTA 10.8.5; RFC 5040 §5.5 (3) leaves it open", Unchecked: "IBTA 10.8.5", Needs: needRead,
		Requirement: "Of two reads into one sink, the later holds when both have completed. iWARP may place them in any order: there it is recorded.",
		Run: func(e *Env) {
			const size = 2000
			c := e.connect(connOpts{})
			one := e.region(c.b, "one", size, remoteAll)
			two := e.region(c.b, "two", size, remoteAll)
			sink := e.region(c.a, "sink", size, e.sinkAccess())
			for i := range e.loops(50, 2000) {
				one.fill(uint64(2 * i))
				two.fill(uint64(2*i + 1))
				c.a.post(read(1, one.at(0), sink.all()), read(2, two.at(0), sink.all()))
				c.a.s.expect(ok(1), ok(2))
				e.lastHolds(sink, one.data(), two.data())
			}
		}},
	{ID: "rdr/empty-among-others", Clause: "RFC 5040 §4.4, §5.5 (12)",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpWrite, rdma.OpRead), Features: rdma.FeatEmptyRead},
		Requirement: "A read without elements is answered in its turn among writes and other reads, and its answer proves that what was written before it has arrived.",
		Run: func(e *Env) {
			const size = 50000
			c := e.connect(connOpts{})
			src := e.region(c.a, "src", size, localOnly)
			sink := e.region(c.a, "sink", size, e.sinkAccess())
			dst := e.region(c.b, "dst", size, remoteAll)
			for i := range e.loops(50, 1000) {
				src.fill(uint64(i))
				c.a.post(write(1, dst.at(0), src.all()), read(2, target{}), read(3, dst.at(0), sink.all()), read(4, target{}))
				c.a.s.expect(ok(1), ok(2))
				e.equal(dst.name+" at the answer of an empty read behind the write", dst.data(), src.data())
				c.a.s.expect(ok(3), ok(4))
				e.equal(sink.name, sink.data(), src.data())
			}
		}},
	{ID: "rdr/ird-zero", Clause: "IBTA 9.7; RFC 5040 §6.1", Unchecked: "IBTA 9.7", Needs: needRead,
		Requirement: "A read towards a peer that takes none is refused, at once or by the peer, and the sink is unchanged.",
		Run: func(e *Env) {
			take := rdma.ConnParam{IRD: 0, ORD: 0, RNRRetry: 7}
			c := e.connect(connOpts{accept: &take})
			e.Note("negotiated ORD %d", c.pa.ORD)
			src := e.region(c.b, "src", 64, remoteAll)
			sink := e.region(c.a, "sink", 64, e.sinkAccess())
			src.fill(1)
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
				fillByte(sink.data(), 0x33)
				c.refuses(c.a, accessRefused(0x0101), read(1, src.at(0), sink.all()))
				e.allBytes(sink.name+" unchanged by a refused read", sink.data(), 0x33)
			}
		}},
	{ID: "rdr/changing-source", Clause: "RFC 5040 §5.5 (8) and IBTA leave it open", Level: May, Needs: needRead,
		Requirement: "A read of memory that its owner keeps changing returns every aligned 8 bytes as they were at some moment.",
		Run: func(e *Env) {
			const words = 512
			c := e.connect(connOpts{})
			src := e.region(c.b, "src", 8*words, remoteAll)
			sink := e.region(c.a, "sink", 8*words, e.sinkAccess())
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
				c.a.post(read(i, src.at(0), sink.all()))
				c.a.s.expect(ok(i))
				for w := range words {
					if v := binary.NativeEndian.Uint64(sink.data()[8*w:]); v != x && v != y {
						torn++
					}
				}
			}
			stop.Store(true)
			if err := e.await(writer); err != nil {
				panic(halt{err})
			}
			if torn > 0 {
				e.failf("aligned 8 bytes as they were at some moment", "%d torn words", torn)
			}
		}},
}
