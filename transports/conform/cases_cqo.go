package conform

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// CQO: completion queues.
var cqoCases = []Case{
	{ID: "cqo/overrun", Clause: "man ibv_poll_cq; RFC 5040 §8.1.1 (10)", Needs: needWrite,
		Requirement: "More completions than a CQ holds are reported as an overrun or held back, never lost silently, " +
			"and other QPs are unaffected.", Run: func(e *Env) {
			const entries = 8
			depth := e.deep(entries + 64)
			box := e.newCQ(e.A, "small cq", entries)
			box.asleep, box.lossy = true, true
			c := e.pair(connOpts{depth: depth, boxA: box})
			box.asleep = false
			c.join(connOpts{})
			box.asleep = true
			well := e.connect(connOpts{})
			src, dst := c.writing(64)
			taken := 0
			for i := range depth {
				if _, err := c.a.tryPost(write(i, dst.at(0), src.all())); err != nil {
					// Once it is lost, the QP may refuse more.
					e.Note("post %d refused: %v", i, err)
					break
				}
				taken++
			}
			e.pause(quietTime) // nobody polls the small CQ
			well.works()
			box.asleep = false
			e.waitFor("all completions, or an overrun that is reported", func() bool {
				return box.err != nil || c.a.s.signaled() == 0
			})
			switch {
			case box.err == nil:
				good := 0
				for i := range c.a.s.done {
					if c.a.s.done[i].Status == rdma.StatusSuccess {
						good++
					}
				}
				if good != taken {
					e.failf("an overrun that is reported, or all completions", "%d successes of %d", good, taken)
				}
				e.Note("no overrun: all %d completions were held back and delivered", taken)
			default:
				e.refusedWith("poll", box.err, rdma.ErrCQOverrun)
				if e.Caps.Features.Has(rdma.FeatAsyncEvents) {
					e.expectEvent(e.A, rdma.EventCQError, 0)
				}
				e.Note("overrun reported")
			}
			well.works()
			c.a.s.drop()
		}},
	{ID: "cqo/depth-range", Clause: "man ibv_create_cq",
		Requirement: "A CQ can have 1 to MaxCQE entries; other depths are refused.", Run: func(e *Env) {
			for _, n := range []int{0, -1, e.A.Caps().MaxCQE + 1} {
				e.notCreated(fmt.Sprintf("cq of %d", n), rdma.ErrInvalid)(e.A.NewCQ(n))
			}
			e.newCQ(e.A, "cq of 1", 1)
		}},
	{ID: "cqo/threads", Clause: "IBTA 10.2.5*; man ibv_poll_cq", Needs: needWrite,
		Requirement: "A CQ may be polled from several threads: every completion comes out once.", Run: func(e *Env) {
			const threads = 8
			depth := e.deep(256)
			c := e.connect(connOpts{depth: depth, rdepth: 1})
			src, dst := c.writing(8)
			for round := range e.loops(10, 500) {
				c.a.sleep() // only the threads poll this side
				for i := range depth {
					c.a.post(write(i, dst.at(0), src.all()))
				}
				var left atomic.Int64
				left.Store(int64(depth))
				var mu sync.Mutex
				var all []rdma.WC
				var pollers []*task
				for range threads {
					pollers = append(pollers, e.start("polling thread", func() error {
						wcs := make([]rdma.WC, 5)
						for left.Load() > 0 && e.ctx.Err() == nil {
							n, err := c.a.box.cq.Poll(wcs)
							if err != nil {
								return err
							}
							mu.Lock()
							all = append(all, wcs[:n]...)
							mu.Unlock()
							left.Add(-int64(n))
						}
						return nil
					}))
				}
				for _, t := range pollers {
					e.must("poll in a thread", e.await(t))
				}
				c.a.wake()
				if len(all) != depth {
					e.failf(fmt.Sprintf("%d completions in round %d", depth, round), "%d", len(all))
				}
				seen := make([]bool, depth)
				for i := range all {
					n := int(uint32(all[i].ID))
					if all[i].ID != sendID(n) || n >= depth || seen[n] || all[i].Status != rdma.StatusSuccess ||
						all[i].QPNum != c.a.num {
						e.failf("every request completes once", "%s", c.a.s.text(&all[i]))
					}
					seen[n] = true
				}
				c.a.s.open = c.a.s.open[:0]
			}
		}},
	{ID: "cqo/short-polls", Clause: "man ibv_poll_cq", Needs: needWrite,
		Requirement: "A poll returns at most as many completions as there is room for, and keeps the rest.",
		Run: func(e *Env) {
			n := e.deep(16)
			c := e.connect(connOpts{depth: n})
			src, dst := c.writing(8)
			for i := range n {
				c.a.post(write(i, dst.at(0), src.all()))
			}
			c.a.sleep()
			if k, err := c.a.box.cq.Poll(nil); k != 0 || err != nil {
				e.failf("a poll without room returns 0", "%d, error %v", k, err)
			}
			room := make([]rdma.WC, 4)
			guard := rdma.WC{ID: 0x6172}
			taken := 0
			e.wait(func() string { return fmt.Sprintf("%d completions in polls of 3", n) }, func() bool {
				room[3] = guard
				k, err := c.a.box.cq.Poll(room[:3])
				e.must("poll", err)
				if k > 3 || room[3] != guard {
					e.failf("at most 3 completions", "%d", k)
				}
				for _, wc := range room[:k] {
					c.a.s.file(wc)
				}
				taken += k
				return taken >= n
			})
			c.a.wake()
			c.a.s.expectOK(0, n)
		}},
}
