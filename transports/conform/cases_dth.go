package conform

import (
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// DTH: a peer that dies or leaves without a word.
var dthCases = []Case{
	{ID: "dth/close-in-transfer", Clause: "IBTA 9.9*; RFC 5041 §6.2", Needs: needWrite,
		Requirement: "When the peer destroys its QP in mid-transfer, the requests end in error within bounded time, " +
			"each once.", Run: func(e *Env) {
			c, src, dst := e.writing(16384)
			c.untilGone(src, dst, c.b.close)
		}},
	{ID: "dth/fail-in-transfer", Clause: "IBTA 9.9*; RFC 5041 §6.2", Needs: needWrite,
		Requirement: "When the peer's QP goes to ERR in mid-transfer, the requests end in error within bounded time, " +
			"each once.", Run: func(e *Env) {
			c, src, dst := e.writing(16384)
			c.untilGone(src, dst, func() { e.must("fail", c.b.qp.Fail()) })
		}},
	{ID: "dth/waiting-read", Clause: "IBTA 9.9*; RFC 5041 §6.2", Needs: needRead,
		Requirement: "Reads towards a QP that has gone end in error, and their sinks are not touched any more.",
		Run: func(e *Env) {
			c, src, sink := e.reading(4096)
			e.must("fail", c.b.qp.Fail())
			sink.freeze()
			depth := min(8, c.a.depth)
			for i := range depth {
				c.a.post(read(i, src.at(0), sink.all()))
			}
			gone := peerGone
			gone.silent = false
			c.a.s.endedBy(gone)
			sink.unchanged("by reads of a peer that has gone")
			c.a.waitState(rdma.QPErr)
			c.a.flushesLater()
		}},
	{ID: "dth/neighbour-unharmed", Clause: "IBTA 10.2.5*; RFC 5040 §7", Needs: needSendWrite,
		Requirement: "The death of one connection leaves other connections of the devices alone.", Run: func(e *Env) {
			well, sick := e.sharedCQs(256, connOpts{})
			src, dst := sick.writing(16384)
			sick.untilGone(src, dst, sick.b.close)
			flow{n: 200, size: 1000, srcSlots: 4, dstSlots: 8}.run(well.a, well.b)
			flow{n: 200, size: 1000, srcSlots: 4, dstSlots: 8}.run(well.b, well.a)
		}},
	{ID: "dth/listener-survives", Clause: "man rdma_listen",
		Requirement: "After connections have died the same listener takes new ones.", Run: func(e *Env) {
			for i := range 6 {
				c := e.connect(connOpts{})
				c.works()
				switch i % 3 {
				case 0:
					c.b.close()
				case 1:
					e.must("fail", c.b.qp.Fail())
				case 2:
					e.must("fail", c.a.qp.Fail())
				}
			}
			e.connect(connOpts{}).works()
		}},
	{ID: "dth/kill-in-transfer", Clause: "IBTA 9.9*, C9-140; RFC 5041 §6.2", Kill: true, Needs: needWrite,
		Requirement: "When the peer's device dies in mid-transfer, the requests end in error within bounded time, " +
			"each once.", Run: func(e *Env) {
			c, src, dst := e.writing(16384)
			c.a.postRecv(recv(1), recv(2))
			c.untilGone(src, dst, func() {
				c.b.sleep()
				e.kill()
			})
		}},
	{ID: "dth/kill-before-accept", Clause: "man rdma_get_cm_event", Kill: true,
		Requirement: "A connect whose listener's device dies ends in error, at its deadline at the latest.",
		Run: func(e *Env) {
			c := e.pair(connOpts{})
			t := c.connecting(e.short(4 * quietTime))
			e.pause(quietTime / 5)
			c.b.sleep()
			e.kill()
			if err := e.await(t); err == nil {
				e.failf("an error of the connect", "none")
			}
		}},
	{ID: "dth/link-cut", Clause: "IBTA 9.9*, C9-140; RFC 5482 §2; RFC 5040 §6.2", Path: cutGiveUp, Needs: needWrite,
		Requirement: "When the link is cut in mid-transfer, the requests end in error within the window that the " +
			"transport was given, each once, and nothing is placed into memory that was handed back, not even when " +
			"the link returns.", Run: func(e *Env) {
			c, src, dst := e.writing(16384)
			var cut time.Time
			c.untilGone(src, dst, func() {
				e.path.Cut(true)
				cut = time.Now()
			})
			// The kernel looks when a retransmission is due: at twice the window at the latest.
			took := time.Since(cut)
			if took > 2*cutGiveUp+quietTime {
				e.failf("the error comes within twice the window of "+cutGiveUp.String(), "after %v",
					took.Round(time.Millisecond))
			}
			e.Note("error %v after the cut, window %v", took.Round(time.Millisecond), cutGiveUp)
			// What the peer hands back is its own: what was under way when the link was cut does not come any more.
			e.must("fail", c.b.qp.Fail())
			c.b.waitState(rdma.QPErr)
			dst.freeze()
			src.fill(2)
			e.path.Cut(false)
			e.pause(quietTime)
			dst.unchanged("when the link returns")
		}},
	{ID: "dth/stopped-peer", Clause: "RFC 9293 §3.8.6.1", Path: stopGiveUp, Needs: needSendWriteRead,
		Requirement: "Requests to a peer that is stopped wait, without error, and complete with the right bytes when " +
			"it goes on.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			const size = 64 << 10
			n := c.a.depth - 1
			src, dst := c.writing(n * size)
			sink := e.region(c.a, "sink", size, e.sinkAccess())
			src.fill(1)
			c.b.sleep()
			e.path.Stop(true)
			goOn := sync.OnceFunc(func() { e.path.Stop(false) })
			defer goOn()       // a case that fails leaves no end stopped
			for i := range n { // more than the sockets hold
				c.a.post(write(i, dst.at(i*size), src.sge(i*size, size)))
			}
			c.a.post(read(n, dst.at((n-1)*size), sink.all()))
			e.pause(time.Duration(e.loops(1, 30)) * time.Second)
			if len(c.a.s.done) > n || c.a.qp.State() != rdma.QPRTS {
				e.failf("the read waits for the peer, and the QP stays in RTS", "%d of %d requests done%s",
					len(c.a.s.done), n+1, e.states())
			}
			e.Note("%d of %d writes were taken while the peer was stopped", len(c.a.s.done), n)
			goOn()
			c.b.wake()
			c.a.s.expectOK(0, n+1)
			dst.holds(src.data())
			sink.holds(src.data()[(n-1)*size:])
			c.works()
		}},
	{ID: "dth/loss", Clause: "RFC 9293 §3.8; RFC 5041 §5.3", Path: stopGiveUp, Needs: needSendWriteRead,
		Requirement: "Loss, reordering and duplication below change no byte, lose and repeat no message, and fail no " +
			"request.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			p := 0.02
			if e.Profile == Full {
				p = 0.1
			}
			e.path.Harm(p, p, p)
			for _, x := range []*end{c.a, c.b} {
				flow{n: e.loops(40, 400), size: 5000, srcSlots: 4, dstSlots: 8}.run(x, c.other(x))
			}
			const size = 32 << 10
			src, dst := c.writing(size)
			sink := e.region(c.a, "sink", size, e.sinkAccess())
			for i := range e.loops(4, 40) {
				src.fill(uint64(i + 1))
				c.a.do(write(1, dst.at(0), src.all()), read(2, dst.at(0), sink.all()))
				sink.holds(src.data())
			}
			e.lossy()
		}},
	{ID: "dth/loss-atomics", Clause: "IBTA 9.7.4*; RFC 7306 §5.2.2", Path: stopGiveUp, Needs: needFetchAdd,
		Requirement: "An atomic whose answer is lost below is executed once.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			word := e.region(c.b, "word", 8, atomicAll)
			old := e.region(c.a, "old", 8, e.sinkAccess())
			// One at a time, so that each loss costs a retransmission time of 200 ms and more: a
			// case has time for some ten.
			e.path.Harm(0.08, 0.08, 0.08)
			n := e.loops(20, 1000)
			for i := range n {
				c.a.do(fetchAdd(i, word.at(0), 1, old.all()))
				old.wordIs(0, uint64(i), "number of additions before")
			}
			e.lossy()
		}},
}

func (e *Env) kill() {
	e.dead = true
	e.must("kill", e.h.Kill(e.B))
}

const (
	cutGiveUp  = 2 * time.Second  // short, as the case has to wait for it
	stopGiveUp = 60 * time.Second // longer than any stop here
)

func (e *Env) lossy() {
	packets, lost := e.path.Counts()
	if lost == 0 {
		e.failf("a path that loses packets", "none of %d was lost", packets)
	}
	e.Note("%d packets, %d lost", packets, lost)
}
