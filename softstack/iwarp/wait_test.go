package iwarp

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// Where many QPs share a CQ, its poller is asked and their sockets are left alone. So
// nothing but the poller tells of what happens on one, and each test here hangs when
// the step it is about is left out of cq.Wait, cq.drive or qp.watchRoom.

// waiting is a goroutine in Wait on the hub's CQ, which sleeps. The channel has its error.
func (h *hub) waiting(ctx context.Context) chan error {
	h.t.Helper()
	must(h.t, h.cq.Arm(false))
	done := waiter(h.t, ctx, h.cq)
	time.Sleep(2 * waitSlice) // it has slept at least once
	return done
}

// alone keeps the background goroutine from the hub's QPs: what it is not notified of, it
// does not mend.
func (h *hub) alone() {
	h.t.Helper()
	for _, q := range h.qps {
		must(h.t, h.dev.bg.p.Remove(q.(*qp).conn))
	}
}

// roused is the end of such a wait.
func (h *hub) roused(what string, done chan error) {
	h.t.Helper()
	select {
	case err := <-done:
		must(h.t, err)
	case <-time.After(testTimeout):
		h.t.Fatalf("%s woke nobody", what)
	}
}

// ring has spoke i send a message, and takes its completion.
func (h *hub) ring(i int, id uint64) {
	s := h.spokes[i]
	s.post(rdma.SendWR{ID: id, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{s.sge(0, 8)}})
	s.want(nil, rdma.WCSend, id, rdma.StatusSuccess)
}

func TestASleeperNoticesEveryQP(t *testing.T) {
	const spokes = 2 * askFrom
	h := newHub(t, spokes, spokes)
	h.alone()
	h.supply(0, spokes, 8)
	for i := range spokes {
		done := h.waiting(t.Context())
		h.ring(i, 1)
		h.roused("a message", done)
		if wc := h.want(nil, rdma.WCRecv, uint64(i), rdma.StatusSuccess); wc.QPNum != h.qps[i].Num() {
			t.Errorf("message %d is of queue pair %d, want %d", i, wc.QPNum, h.qps[i].Num())
		}
	}
}

// What came before Wait began ends it: the poller reports what is there and not what is
// new.
func TestWhatCameBeforeWaitEndsIt(t *testing.T) {
	const spokes, rounds = 2 * askFrom, 20
	h := newHub(t, spokes, spokes*rounds)
	h.alone()
	h.supply(0, spokes*rounds, 8)
	done := h.waiting(t.Context()) // from here on the sockets are in the poller
	h.ring(0, 1)
	h.roused("a message", done)
	h.want(nil, rdma.WCRecv, 0, rdma.StatusSuccess)
	for id := range uint64(spokes * (rounds - 1)) {
		must(t, h.cq.Arm(false))
		h.ring(int(id%spokes), id)
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		err := h.cq.Wait(ctx)
		cancel()
		must(t, err)
		h.want(nil, rdma.WCRecv, id+1, rdma.StatusSuccess)
	}
}

// A wait begins with no read of a socket that the poller has.
func TestAWaitReadsNothingInVain(t *testing.T) {
	h := newHub(t, 1, 1)
	h.alone()
	h.supply(0, 1, 8)
	done := h.waiting(t.Context()) // from here on the socket is in the poller
	h.ring(0, 1)
	h.roused("a message", done)
	h.want(nil, rdma.WCRecv, 0, rdma.StatusSuccess)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	before := stream.KernelCalls().Recv
	for range 20 {
		must(t, h.cq.Arm(false))
		if err := h.cq.Wait(ctx); err == nil {
			t.Fatal("a wait of nothing ends")
		}
	}
	if n := stream.KernelCalls().Recv - before; n > 2 { // a spoke's goroutine may look once
		t.Errorf("20 waits read %d times", n)
	}
}

// woken counts how often a poller was woken.
type woken struct {
	stream.Poller
	times atomic.Int32
}

func (p *woken) Wake() { p.times.Add(1); p.Poller.Wake() }

// Waits in a row watch a context once, and its end wakes each of them, also behind waits with another one.
func TestTheEndOfAContextWakesEachWaitWithIt(t *testing.T) {
	h := newHub(t, 1, 4)
	h.supply(0, 4, 8)
	c := h.cq.(*cq)
	p := &woken{Poller: c.poller}
	c.poller = p
	var ctx [2]context.Context
	var end [2]context.CancelFunc
	for i := range ctx {
		ctx[i], end[i] = context.WithCancel(t.Context())
	}
	for i := range uint64(4) {
		done := h.waiting(ctx[i%2])
		h.ring(0, i)
		h.roused("a message", done)
		h.want(nil, rdma.WCRecv, i, rdma.StatusSuccess)
	}
	for i := range ctx {
		done := h.waiting(ctx[i])
		before := p.times.Load()
		end[i]()
		eventually(t, "the end of the context wakes the poller", func() bool { return p.times.Load() > before })
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the wait ended with %v", err)
		}
	}
	if n := testing.AllocsPerRun(100, func() { c.Wait(ctx[1]) }); n > 2 { // to watch it anew takes three
		t.Errorf("a wait allocates %v times", n)
	}
}

// Polls alone find it, too, whichever of the QPs has it, and all of them at once.
func TestPollsAskThePoller(t *testing.T) {
	const spokes = 2*driveAtOnce + 1
	h := newHub(t, spokes, spokes+1)
	h.alone()
	h.supply(0, spokes+1, 8)
	done := h.waiting(t.Context())
	h.ring(0, 1)
	h.roused("a message", done)
	h.want(nil, rdma.WCRecv, 0, rdma.StatusSuccess)
	for i := range spokes {
		h.ring(i, 2)
	}
	seen := map[uint32]bool{}
	for range spokes {
		seen[h.next(nil).QPNum] = true
	}
	if len(seen) != spokes {
		t.Errorf("messages of %d queue pairs, want %d", len(seen), spokes)
	}
}

// Queue pairs that nothing comes on become quiet, though the poller is asked, and are
// heard all the same. Else one busy queue pair of few pays for a question with each poll.
func TestQueuePairsBecomeQuietBehindAWait(t *testing.T) {
	const spokes, messages = askFrom, 8
	h := newHub(t, spokes, spokes+messages+1)
	h.alone()
	h.supply(0, spokes+messages+1, 8)
	done := h.waiting(t.Context())
	h.ring(0, 1)
	h.roused("a message", done)
	h.want(nil, rdma.WCRecv, 0, rdma.StatusSuccess)
	for i := range messages {
		for range 2 * idleAfter / messages {
			if n, err := h.cq.Poll(make([]rdma.WC, 1)); n != 0 || err != nil {
				t.Fatalf("a poll of nothing: %d completions, %v", n, err)
			}
		}
		h.ring(0, 2)
		h.want(nil, rdma.WCRecv, uint64(i+1), rdma.StatusSuccess)
	}
	for i, q := range h.qps {
		if quiet := q.(*qp).idlePolls.Load() >= idleAfter; quiet != (i > 0) {
			t.Errorf("queue pair %d is quiet: %v", i, quiet)
		}
	}
	// One is quiet, and another is not: the quiet one is heard within a bounded number of looks.
	h.ring(spokes-1, 3)
	var wc [1]rdma.WC
	for looks := 0; ; looks++ {
		if n, err := h.cq.Poll(wc[:]); n != 0 || err != nil {
			break
		} else if looks > 2*idleAsk {
			t.Fatalf("%d polls did not hear what a quiet queue pair received", looks)
		}
	}
	if wc[0].Status != rdma.StatusSuccess || wc[0].ID != messages+1 {
		t.Errorf("completion %+v, want of receive %d", wc[0], messages+1)
	}
}

// A QP whose socket the poller does not have is looked at all the same.
func TestASleeperLooksAtWhatThePollerDoesNotHave(t *testing.T) {
	const spokes = 2 * askFrom
	h := newHub(t, spokes, spokes)
	h.supply(0, spokes, 8)
	done := h.waiting(t.Context())
	q := h.qps[1].(*qp)
	q.mu.Lock()
	q.leavePollers()
	q.mu.Unlock()
	h.ring(1, 1)
	h.roused("a message that the poller did not see", done)
	h.want(nil, rdma.WCRecv, 0, rdma.StatusSuccess)
}

// Octets that found no room in the socket go on when there is some, and afterwards
// nobody is told of room that nobody needs.
func TestASleeperNoticesRoom(t *testing.T) {
	const spokes = 2 * askFrom
	for name, before := range map[string]bool{"first wait": false, "later wait": true} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t, spokes, spokes)
			h.supply(0, spokes, 8)
			h.alone()
			if before {
				done := h.waiting(t.Context())
				h.ring(0, 1)
				h.roused("a message", done)
				h.want(nil, rdma.WCRecv, 0, rdma.StatusSuccess)
				h.id++
			}
			h.ring(2, 1) // a passive side sends nothing before that
			h.want(nil, rdma.WCRecv, h.id, rdma.StatusSuccess)
			peer, q := h.spokes[2], h.qps[2].(*qp)
			taker := peer.qp.(*qp)
			taker.mu.Lock() // it takes nothing
			n, full := h.fillSocket(q, peer)
			if !full {
				taker.mu.Unlock()
				t.Fatal("a socket takes 32 MiB that nobody reads")
			}
			done := h.waiting(t.Context())
			taker.mu.Unlock()
			h.roused("room in the socket", done)
			q.mu.Lock()
			room := q.writeIn[0]
			q.mu.Unlock()
			h.want(nil, rdma.WCWrite, uint64(n), rdma.StatusSuccess)
			if room {
				t.Error("the poller still reports room, which ends every sleep at once")
			}
		})
	}
}

// fillSocket writes to a peer that takes nothing until octets wait, polls the
// completions of what did fit, and returns the ID of the write that did not.
func (h *hub) fillSocket(q *qp, peer *end) (id int, full bool) {
	h.t.Helper()
	for id := range 8 {
		need(q.PostSend([]rdma.SendWR{{ID: uint64(id), Op: rdma.OpWrite, Flags: rdma.Signaled, NumSGE: 1,
			SGE: [4]rdma.SGE{h.sge(0, window)}, RKey: peer.mr.RKey(), RemoteAddr: peer.mr.Addr()}}))(h.t)
		q.mu.Lock()
		for q.tx.more { // a turn ends before the socket is full
			q.transmit()
		}
		full := q.tx.blocked
		q.mu.Unlock()
		if full {
			for h.cq.(*cq).len() > 0 {
				h.next(nil)
			}
			return id, true
		}
	}
	return 0, false
}
