package conform

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// EVT: completion events and asynchronous events.
var evtCases = []Case{
	{ID: "evt/one-event", Clause: "man ibv_req_notify_cq", Needs: needEvents,
		Requirement: "The first completion after arming raises the event.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			for i := range e.loops(20, 500) {
				c.b.postRecv(recv(i))
				e.arm(c.b.box, false)
				c.wakes(send(i), "first completion after arming")
				c.b.r.expect(got(i, 0))
			}
		}},
	{ID: "evt/one-shot", Clause: "man ibv_req_notify_cq", Needs: needEvents,
		Requirement: "An armed CQ raises one event: the next completion raises none before the CQ is armed again.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			c.b.postRecv(recv(1), recv(2), recv(3))
			e.arm(c.b.box, false)
			c.wakes(send(1), "first completion after arming")
			c.b.r.expect(got(1, 0))
			c.a.post(send(2))
			e.expectSleep(c.b.box, "not armed again")
			c.a.s.expect(ok(2))
			c.b.r.expect(got(2, 0))
			e.arm(c.b.box, false)
			c.wakes(send(3), "armed again")
			c.b.r.expect(got(3, 0))
		}},
	{ID: "evt/arm-after-completion", Clause: "IBTA 11.4.2.2; man ibv_req_notify_cq", Level: May, Needs: needEventsRead,
		Requirement: "A completion that waits already when the CQ is armed raises no event, which is why one polls " +
			"after arming.", Run: func(e *Env) {
			c, src, sink := e.reading(8)
			c.b.postRecv(recv(1))
			c.b.sleep()
			c.a.post(send(1), read(2, src.at(0), sink.all()))
			c.a.s.expect(ok(1), ok(2)) // the answer proves that the message before has arrived
			e.arm(c.b.box, false)
			if e.waitCQ(c.b.box, quietTime, "armed after the completion") {
				e.Note("an event for the completion that waited")
			} else {
				e.Note("no event")
			}
			c.b.wake()
			c.b.r.expect(got(1, 0))
		}},
	{ID: "evt/own-completion", Clause: "man ibv_get_cq_event", Needs: needEventsRead,
		Requirement: "A side that sleeps in wait is woken by the completion of its own request: waiting needs no poll.",
		Run: func(e *Env) {
			c, src, sink := e.reading(50000)
			c.b.sleep()
			for i := range e.loops(20, 500) {
				src.fill(uint64(i))
				e.arm(c.a.box, false)
				c.a.post(read(i, src.at(0), sink.all()))
				e.expectWake(c.a.box, "own read, with nobody polling")
				c.a.s.expect(ok(i))
				sink.holds(src.data())
			}
		}},
	{ID: "evt/solicited", Clause: "man ibv_req_notify_cq (solicited_only)", Needs: needSolicited,
		Requirement: "Armed for solicited completions, a CQ is silent for a plain message and wakes for a solicited " +
			"one.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			c.b.postRecv(recv(1), recv(2))
			e.arm(c.b.box, true)
			c.a.post(send(1))
			e.expectSleep(c.b.box, "a plain message")
			c.a.s.expect(ok(1))
			c.wakes(solicited(send(2)), "a solicited message")
			c.b.r.expect(got(1, 0), got(2, 0))
		}},
	{ID: "evt/solicited-error", Clause: "man ibv_req_notify_cq: \"or if the status is not successful\"",
		Needs: needSolicited, Requirement: "Armed for solicited completions, a CQ wakes for a failed one.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			c.b.postRecv(recv(1))
			e.arm(c.b.box, true)
			e.must("fail", c.b.qp.Fail())
			e.expectWake(c.b.box, "a flushed receive")
			c.b.r.expect(recvFails(1, rdma.StatusWRFlushErr))
		}},
	{ID: "evt/stronger-wins", Clause: "IBTA C11-31, C11-32", Needs: needSolicited,
		Requirement: "Of two requests before an event, the one for any completion holds, in either order.",
		Run: func(e *Env) {
			c := e.connect(connOpts{})
			for i, order := range [][2]bool{{true, false}, {false, true}} {
				c.b.postRecv(recv(i))
				e.arm(c.b.box, order[0])
				e.arm(c.b.box, order[1])
				c.wakes(send(i), fmt.Sprintf("armed for any completion too, order %v", order))
				c.b.r.expect(got(i, 0))
			}
		}},
	{ID: "evt/no-lost-wakeup", Clause: "man ibv_get_cq_event, example", Needs: needEvents,
		Requirement: "A receiver that arms, polls and then waits is never left asleep with a message in the CQ.",
		Run: func(e *Env) {
			const slots = 16
			c := e.connect(connOpts{})
			n := e.loops(1000, 50000)
			recvs := make([]rdma.RecvWR, slots)
			for i := range recvs {
				recvs[i] = recv(i)
			}
			if _, err := c.b.qp.PostRecv(recvs); err != nil {
				e.must("post receives", err)
			}
			c.b.sleep() // only the receiver polls this side
			var arrived atomic.Int64
			receiver := e.start("receiver", func() error {
				wcs := make([]rdma.WC, slots)
				for seen := 0; seen < n; {
					if err := c.b.box.cq.Arm(false); err != nil {
						return err
					}
					k, err := c.b.box.cq.Poll(wcs)
					if err != nil {
						return err
					}
					for _, wc := range wcs[:k] {
						if wc.Status != rdma.StatusSuccess {
							return fmt.Errorf("receive: %s", wc.Status)
						}
						if seen+slots < n {
							if _, err := c.b.qp.PostRecv([]rdma.RecvWR{recv(seen)}); err != nil {
								return err
							}
						}
						seen++
					}
					arrived.Add(int64(k))
					if k > 0 {
						continue
					}
					ctx, cancel := context.WithTimeout(e.ctx, 2*time.Second)
					err = c.b.box.cq.Wait(ctx)
					cancel()
					if err != nil {
						return fmt.Errorf("asleep after message %d: %w", seen, err)
					}
				}
				return nil
			})
			// The sender paces itself by what has arrived, so that the receiver goes to sleep again and again.
			for i := range n {
				c.a.push(send(i))
				for k := e.Rand.IntN(200); k > 0; k-- {
					e.step()
				}
				e.waitFor("the receiver takes messages", func() bool {
					return receiver.finished() || int(arrived.Load())+slots > i+1
				})
				if receiver.finished() {
					break
				}
			}
			e.must("arm, poll, wait", e.await(receiver))
			c.a.s.expectOK(0, n)
			c.b.wake()
		}},
	{ID: "evt/wait-deadline", Clause: "man ibv_get_cq_event", Needs: needEvents,
		Requirement: "A wait without a completion ends with its context, not before.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			e.arm(c.b.box, false)
			start := time.Now()
			c.b.sleep()
			err := e.beside("wait without a completion", func() error { return c.b.box.cq.Wait(e.short(quietTime)) })
			took := time.Since(start)
			if !errors.Is(err, context.DeadlineExceeded) {
				e.failf("the error of the context", "%v", err)
			}
			if took < quietTime/2 || took > quietTime+soon {
				e.failf(fmt.Sprintf("end after %v", quietTime), "after %v", took)
			}
			c.b.wake()
			c.works()
		}},
	{ID: "evt/access-event", Clause: "IBTA C9-222.1.1; man ibv_get_async_event", Needs: needAsyncWrite,
		Requirement: "A remote access error is reported at the side that refused it.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			src := e.region(c.a, "src", 64, localOnly)
			dst := e.region(c.b, "dst", 64, rdma.LocalWrite|rdma.RemoteRead)
			c.refuses(c.a, accessRefused(0x0102), write(1, dst.at(0), src.all()))
			e.expectEvent(e.B, rdma.EventQPAccess, c.b.num)
		}},
	{ID: "evt/disconnect-event", Clause: "man rdma_disconnect", Needs: needAsync,
		Requirement: "An orderly disconnect is reported at the other side.", Run: func(e *Env) {
			c := e.connect(connOpts{})
			c.a.disconnect()
			e.expectEvent(e.B, rdma.EventPeerDisconnect, c.b.num)
		}},
	{ID: "evt/clean-run", Clause: "man ibv_get_async_event",
		Needs:       rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite), Features: rdma.FeatAsyncEvents},
		Requirement: "A run without errors raises no asynchronous event.", Run: func(e *Env) {
			c, src, dst := e.writing(64)
			c.a.doEach(32, func(i int) rdma.SendWR { return write(i, dst.at(0), src.all()) })
			c.works()
			for _, x := range []*end{c.a, c.b} {
				if seen := events(x.dev, x.num); len(seen) > 0 {
					e.failf(x.name+": no asynchronous event", "%s", seen[0].Type)
				}
			}
		}},
}
