package conform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const atomicAll = remoteAll | rdma.RemoteAtomic

// ATM: atomic operations on 8 bytes.
var atmCases = []Case{
	{ID: "atm/fetch-add", Clause: "IBTA 9.4.5*; RFC 7306 §5.1.1", Needs: needFetchAdd,
		Requirement: "Fetch-add returns the old value and leaves old plus addend, modulo 2^64.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			dst := e.region(c.b, "dst", 64, atomicAll)
			sink := e.region(c.a, "sink", 24, e.sinkAccess())
			for i, v := range []struct{ old, add uint64 }{
				{0, 1}, {41, 1}, {7, 0}, {1, 1 << 63}, {^uint64(0), 1}, {^uint64(0), ^uint64(0)},
				{0x0102030405060708, 0x1000000000000001},
			} {
				dst.fill(uint64(i))
				dst.setWord(16, v.old)
				dst.freeze()
				sink.blank()
				c.a.do(fetchAdd(i, dst.at(16), v.add, sink.sge(8, 8)))
				sink.wordIs(8, v.old, "old value")
				sink.holdsOnly(8, sink.data()[8:16])
				dst.wordIs(16, v.old+v.add, "new value")
				dst.setWord(16, v.old)
				dst.unchanged("around the word")
			}
		}},
	{ID: "atm/cmp-swap", Clause: "IBTA 9.4.5*; RFC 7306 §5.1.2", Needs: needCmpSwap,
		Requirement: "Compare-swap stores the new value only when the old one was expected, and always returns the " +
			"old one.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			dst := e.region(c.b, "dst", 64, atomicAll)
			sink := e.region(c.a, "sink", 8, e.sinkAccess())
			for i, v := range []struct{ old, expect, new uint64 }{
				{5, 5, 9}, {5, 6, 9}, {0, 0, ^uint64(0)}, {0x0102030405060708, 0x0807060504030201, 1},
				{1 << 63, 1 << 63, 0}, {3, 3, 3},
			} {
				dst.setWord(8, v.old)
				c.a.do(cmpSwap(i, dst.at(8), v.expect, v.new, sink.all()))
				sink.wordIs(0, v.old, "old value")
				if v.old == v.expect {
					v.old = v.new
				}
				dst.wordIs(8, v.old, "new value")
			}
		}},
	{ID: "atm/unaligned", Clause: "IBTA 9.9.3*; RFC 7306 §5.2.1, §8.2", Needs: needFetchAdd,
		Requirement: "An atomic on an address that is not a multiple of 8 is refused; memory and sink are unchanged.",
		Run: func(e *Env) {
			for _, off := range []int{1, 4, 7} {
				c := e.connect(connOpts{})
				near, far := c.nearFar(64, atomicAll)
				c.noEffect(requestRefused(0x0207), fetchAdd(1, far.at(off), 1, near.sge(0, 8)), near, far)
			}
		}},
	{ID: "atm/sink-length", Clause: "IBTA Table 100*; man ibv_post_send", Needs: needFetchAdd,
		Requirement: "A sink of less than 8 bytes is refused, and nothing is written behind it.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			dst := e.region(c.b, "dst", 8, atomicAll)
			sink := e.region(c.a, "sink", 64, e.sinkAccess())
			sink.fill(1)
			wr := fetchAdd(1, dst.at(0), 1, sink.sge(8, 4))
			c.localFault(wr, sink.part(12, 52), rdma.StatusLocLenErr, rdma.StatusLocQPOpErr)
		}},
	{ID: "atm/two-sinks", Clause: "IBTA 9.4.5*; man ibv_post_send",
		Needs: rdma.Need{Ops: rdma.Ops(rdma.OpFetchAdd), SGE: 2}, Requirement: "An atomic with two elements for the " +
			"old value is refused, or fills them one after the other; nothing around them is written.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			dst := e.region(c.b, "dst", 8, atomicAll)
			sink := e.region(c.a, "sink", 64, e.sinkAccess())
			const old = 0x0102030405060708
			dst.setWord(0, old)
			sink.blank()
			wr := fetchAdd(1, dst.at(0), 1, sink.sge(8, 4), sink.sge(24, 4))
			around := append([]byte{}, sink.data()...)
			n, err := c.a.tryPost(wr)
			if err != nil {
				if errors.Is(err, rdma.ErrQueueFull) || errors.Is(err, rdma.ErrClosed) {
					e.failf("refusal that names the argument", "%v", err)
				}
				e.Note("refused at once: %v", err)
				sink.wordIs(8, 0x3333333333333333, "first sink")
				dst.wordIs(0, old, "value that a refused atomic was for")
				c.works()
				return
			}
			if wc := c.a.s.next("the atomic completes"); wc.Status != rdma.StatusSuccess {
				c.a.s.judge(sendFails(1, rdma.StatusLocProtErr, rdma.StatusLocLenErr, rdma.StatusLocQPOpErr), &wc)
				e.Note("refused by %s after %d was taken", wc.Status, n)
				c.a.waitState(rdma.QPErr)
			} else {
				e.Note("taken, in two elements")
				var v [8]byte
				binary.NativeEndian.PutUint64(v[:], old)
				copy(around[8:12], v[:4])
				copy(around[24:28], v[4:])
				dst.wordIs(0, old+1, "new value")
			}
			e.equal(sink.name+": the elements, and the bytes around them", sink.data(), around)
		}},
	{ID: "atm/no-remote-atomic", Clause: "IBTA 10.6.6*; man ibv_reg_mr", Needs: needFetchAdd,
		Requirement: "An atomic on a registration without remote atomic is refused; memory and sink are unchanged.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			near, far := c.nearFar(8, remoteAll)
			c.noEffect(accessRefused(0x0102), fetchAdd(1, far.at(0), 1, near.all()), near, far)
		}},
	{ID: "atm/bad-key", Clause: "IBTA 9.9.3*, C9-222.1.1", Needs: needCmpSwap,
		Requirement: "An atomic under a wrong key, or beyond the registration, is refused; memory and sink are " +
			"unchanged.", Run: func(e *Env) {
			for _, beyond := range []bool{false, true} {
				c := e.connect(connOpts{})
				near, far := c.nearFar(8, atomicAll)
				far.setWord(0, 0) // it would be swapped
				to := far.badKey()
				if beyond {
					to = far.at(1 << 20)
				}
				c.noEffect(accessRefused(0x0100, 0x0101), cmpSwap(1, to, 0, 1, near.all()), near, far)
			}
		}},
	{ID: "atm/concurrent", Clause: "IBTA 9.4.5*; RFC 7306 §5.3", Needs: needFetchAdd,
		Requirement: "Atomics of several QPs on one word are atomic: all returned values differ and the sum is exact.",
		Run: func(e *Env) {
			const qps = 4
			n := e.loops(250, 50000)
			var dst *region
			var sinks [qps]*region
			var sent [qps]int
			for i := range qps {
				c := e.connect(connOpts{})
				if sinks[i] = e.region(c.a, "sink", 8, e.sinkAccess()); i == 0 {
					dst = e.region(c.b, "dst", 8, atomicAll)
				}
			}
			completed := func(c *conn) bool { return len(c.a.s.done) > 0 }
			seen := make([]bool, qps*n)
			for got := 0; got < qps*n; {
				for i, c := range e.conns {
					if sent[i] < n && len(c.a.s.open) == 0 && !completed(c) {
						c.a.post(fetchAdd(sent[i], dst.at(0), 1, sinks[i].all()))
						sent[i]++
					}
				}
				e.waitFor("an atomic completes", func() bool { return slices.ContainsFunc(e.conns, completed) })
				for i, c := range e.conns {
					if !completed(c) {
						continue
					}
					c.a.s.expect(ok(sent[i] - 1))
					v := sinks[i].word(0)
					if v >= uint64(len(seen)) || seen[v] {
						e.failf(fmt.Sprintf("every value below %d once", len(seen)), "%d again", v)
					}
					seen[v] = true
					got++
				}
			}
			dst.wordIs(0, uint64(qps*n), "sum")
		}},
	{ID: "atm/share-ord", Clause: "IBTA 9.7*; RFC 7306 §5.4",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpFetchAdd, rdma.OpRead)},
		Requirement: "Atomics and reads share ORD: more of them than that may be posted, and all complete in order.",
		Run: func(e *Env) {
			depth := e.deep(24)
			c := e.connectWith(rdma.ConnParam{IRD: 1, ORD: 1, RNRRetry: 7}, connOpts{depth: depth})
			dst := e.region(c.b, "dst", 8, atomicAll)
			sink := e.region(c.a, "sink", 8*depth, e.sinkAccess())
			c.a.doEach(depth, func(i int) rdma.SendWR {
				if i%2 == 0 {
					return fetchAdd(i, dst.at(0), 1, sink.sge(8*i, 8))
				}
				return read(i, dst.at(0), sink.sge(8*i, 8))
			})
			for i := range depth {
				sink.wordIs(8*i, uint64((i+1)/2), fmt.Sprintf("value that request %d fetched", i))
			}
		}},
}

// word is the remote 8 bytes of a region, in host order.
func (r *region) word(off int) uint64       { return binary.NativeEndian.Uint64(r.data()[off:]) }
func (r *region) setWord(off int, v uint64) { binary.NativeEndian.PutUint64(r.data()[off:], v) }

func (r *region) wordIs(off int, want uint64, what string) {
	if g := r.word(off); g != want {
		r.e.failf(fmt.Sprintf("%s: %s is %#x", r.name, what, want), "%#x", g)
	}
}
