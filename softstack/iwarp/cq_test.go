package iwarp

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// small is an end whose QP has a CQ of its own with the given depth.
func small(t *testing.T, dev *Device, depth int) *end {
	t.Helper()
	e := newEndOn(t, dev, rdma.QPConfig{})
	must(t, e.qp.Close())
	must(t, e.cq.Close())
	e.cq = need(dev.NewCQ(depth))(t)
	e.qp = need(dev.NewQP(rdma.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 128, RecvDepth: 128}))(t)
	return e
}

// TestOverrunHarmsOnlyItsQPs: a CQ that is never polled overruns, its QP dies
// with an event, and a QP of another CQ goes on (RFC 5042 §6.4.3).
func TestOverrunHarmsOnlyItsQPs(t *testing.T) {
	for _, side := range []string{"receive", "send", "send with a fault behind"} {
		t.Run(side, func(t *testing.T) {
			b := newEnd(t, Config{}, rdma.QPConfig{})
			x, peer := small(t, b.dev, 4), newEnd(t, Config{}, rdma.QPConfig{})
			defer x.free()
			join(t, peer, x)
			friend := newEnd(t, Config{}, rdma.QPConfig{})
			join(t, friend, b)

			switch side {
			case "receive":
				for i := range 16 {
					x.postRecv(uint64(i), x.sge(0, 8))
				}
				for i := range 16 {
					if _, err := peer.qp.PostSend([]rdma.SendWR{{ID: uint64(i), Op: rdma.OpSend, NumSGE: 1,
						SGE: [4]rdma.SGE{peer.sge(0, 8)}}}); err != nil {
						t.Fatal(err)
					}
				}
			default:
				peer.post(rdma.SendWR{ID: 1, Op: rdma.OpWrite}) // a responder waits for it
				eventually(t, "responder free to send", func() bool {
					q := x.qp.(*qp)
					q.mu.Lock()
					defer q.mu.Unlock()
					return q.tx.start.MaySend()
				})
				wrs := make([]rdma.SendWR, 16)
				for i := range wrs {
					wrs[i] = rdma.SendWR{ID: uint64(i), Op: rdma.OpWrite, Flags: rdma.Signaled}
				}
				if side != "send" {
					wrs[8].NumSGE, wrs[8].SGE[0] = 1, rdma.SGE{Addr: 1, Len: 1, LKey: 1}
				}
				x.qp.PostSend(wrs)
			}
			eventually(t, "qp in ERR", func() bool { return x.qp.State() == rdma.QPErr })
			var cqError bool
			for ev, ok := b.dev.Event(); ok; ev, ok = b.dev.Event() {
				cqError = cqError || ev.Type == rdma.EventCQError
			}
			if !cqError {
				t.Error("no event of the overrun")
			}
			// Posting to the dead QP must return, whatever it says.
			x.qp.PostRecv([]rdma.RecvWR{{ID: 99}})
			x.qp.PostSend([]rdma.SendWR{{ID: 99, Op: rdma.OpSend}})
			n, err := x.cq.Poll(x.wcs)
			if n != 4 || err != nil {
				t.Errorf("first poll: %d, %v, want the 4 that fit", n, err)
			}
			for i, wc := range x.wcs[:n] {
				if wc.ID != uint64(i) || wc.Status != rdma.StatusSuccess {
					t.Errorf("completion %d is %+v", i, wc)
				}
			}
			if n, err := x.cq.Poll(x.wcs); n != 0 || !errors.Is(err, rdma.ErrCQOverrun) {
				t.Errorf("second poll: %d, %v", n, err)
			}
			echoOnce(t, friend, b)
		})
	}
}

func (c *cq) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.tail - c.head)
}

// TestNoLostWakeup: two sides that sleep in Wait between every message. A lost
// event would cost a whole waitSlice; a few may be the machine's own doing. One
// that is busy takes long over a round, and makes as many as it can.
func TestNoLostWakeup(t *testing.T) {
	t.Run("blocking", func(t *testing.T) { noLostWakeup(t, t.Context()) })
	t.Run("parking", func(t *testing.T) { noLostWakeup(t, rdma.Parked(t.Context())) })
}

func noLostWakeup(t *testing.T, ctx context.Context) {
	const most, least, enough = 20000, 500, 7 * time.Second
	a, b := pair(t, Config{}, rdma.QPConfig{})
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	var last atomic.Int64 // round that ends the test
	last.Store(most - 1)
	over := time.Now().Add(enough)
	turn := func(e *end, first bool) (slow int, err error) {
		recv := []rdma.RecvWR{{NumSGE: 1, SGE: [4]rdma.SGE{e.sge(0, 8)}}}
		send := []rdma.SendWR{{Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{e.sge(64, 8)}}}
		post := func(i int64) error {
			send[0].Flags = 0
			if i%64 == 0 {
				send[0].Flags = rdma.Signaled // frees the places before it
			}
			_, errRecv := e.qp.PostRecv(recv)
			_, errSend := e.qp.PostSend(send)
			return errors.Join(errRecv, errSend)
		}
		for i := int64(0); i <= last.Load(); i++ {
			if first {
				if i >= least && time.Now().After(over) {
					last.Store(i) // the other side has not seen the message of this round
				}
				if err := post(i); err != nil {
					return slow, err
				}
			}
			begin := time.Now()
			for got := false; !got; {
				if err := e.cq.Arm(false); err != nil {
					return slow, err
				}
				n, err := e.cq.Poll(e.wcs)
				if err != nil {
					return slow, err
				}
				for _, wc := range e.wcs[:n] {
					if wc.Status != rdma.StatusSuccess {
						return slow, &rdma.StatusError{WC: wc}
					}
					got = got || wc.Opcode == rdma.WCRecv
				}
				if !got && n == 0 {
					if err := e.cq.Wait(ctx); err != nil {
						return slow, err
					}
				}
			}
			if first && time.Since(begin) > waitSlice*3/4 {
				slow++
			}
			if !first {
				if err := post(i); err != nil {
					return slow, err
				}
			}
		}
		return slow, nil
	}
	b.postRecv(0, b.sge(0, 8))
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := turn(b, false); err != nil {
			t.Error(err)
			cancel()
		}
	})
	slow, err := turn(a, true)
	if err != nil {
		t.Error(err)
		cancel()
	}
	wg.Wait()
	if rounds := int(last.Load() + 1); slow > 20+rounds/1000 {
		t.Errorf("%d of %d rounds took a whole slice: events are lost", slow, rounds)
	}
}

// TestFlushWakesAWaiter: completions that another goroutine causes reach a
// waiter at once, though no octet moves.
func TestFlushWakesAWaiter(t *testing.T) {
	// None is quick where nothing wakes the waiter; a busy machine delays some.
	const enough, most = 4, 24
	quick := 0
	for rounds := 0; quick < enough && rounds < most; rounds++ {
		a, _ := pair(t, Config{}, rdma.QPConfig{})
		a.postRecv(1)
		must(t, a.cq.Arm(false))
		done := waiter(t, t.Context(), a.cq)
		time.Sleep(time.Millisecond) // it sleeps
		a.qp.(*qp).mu.Lock()
		a.qp.(*qp).leavePollers() // the end of the stream is no help either
		a.qp.(*qp).mu.Unlock()
		time.Sleep(time.Millisecond)
		begin := time.Now()
		must(t, a.qp.Fail())
		must(t, <-done)
		if time.Since(begin) <= waitSlice/2 {
			quick++
		}
	}
	if quick < enough {
		t.Errorf("%d of %d flushes did not wait for the end of a slice", quick, most)
	}
}

// TestTwoCQs: send and receive completions of one QP on CQs that different
// goroutines wait on.
func TestTwoCQs(t *testing.T) {
	a := newEnd(t, Config{}, rdma.QPConfig{})
	rcq := need(a.dev.NewCQ(64))(t)
	must(t, a.qp.Close())
	a.qp = need(a.dev.NewQP(rdma.QPConfig{SendCQ: a.cq, RecvCQ: rcq, SendDepth: 16, RecvDepth: 16}))(t)
	t.Cleanup(func() { a.qp.Close(); must(t, rcq.Close()) })
	b := newEnd(t, Config{}, rdma.QPConfig{})
	join(t, a, b)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	const n = 50
	var wg sync.WaitGroup
	collect := func(c rdma.CQ, op rdma.WCOpcode) {
		defer wg.Done()
		var wcs [4]rdma.WC
		for got := 0; got < n; {
			err := c.Arm(false)
			k := 0
			if err == nil {
				k, err = c.Poll(wcs[:])
			}
			if err != nil {
				t.Error(err)
				return
			}
			for _, wc := range wcs[:k] {
				if wc.Opcode != op || wc.Status != rdma.StatusSuccess {
					t.Errorf("%v CQ has %+v", op, wc)
				}
			}
			if got += k; k == 0 {
				if err := c.Wait(ctx); err != nil {
					t.Errorf("%v CQ: %d of %d: %v", op, got, n, err)
					return
				}
			}
		}
	}
	wg.Add(2)
	go collect(a.cq, rdma.WCSend)
	go collect(rcq, rdma.WCRecv)
	for i := range n {
		b.postRecv(uint64(i), b.sge(0, 8))
		eventually(t, "room to receive", func() bool {
			_, err := a.qp.PostRecv([]rdma.RecvWR{{NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)}}})
			return err == nil
		})
		eventually(t, "room to send", func() bool {
			_, err := a.qp.PostSend([]rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Signaled}})
			return err == nil
		})
		b.want(nil, rdma.WCRecv, uint64(i), rdma.StatusSuccess)
		b.post(rdma.SendWR{ID: uint64(i), Op: rdma.OpSend})
		b.want(nil, rdma.WCSend, uint64(i), rdma.StatusSuccess)
	}
	wg.Wait()
}

// TestWaitEndsWithItsCQ: Close wakes a waiter; a dead context ends Wait at once,
// but an event that is there wins.
func TestWaitEndsWithItsCQ(t *testing.T) {
	dev := need(Open(Config{}))(t)
	defer dev.Close()
	c := need(dev.NewCQ(4))(t)
	done := waiter(t, context.Background(), c)
	must(t, c.Close())
	if err := <-done; !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("wait: %v", err)
	}
	if err := c.Arm(false); !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("arm: %v", err)
	}
	dead, cancel := context.WithCancel(t.Context())
	cancel()
	a, b := pair(t, Config{}, rdma.QPConfig{})
	if err := b.cq.Wait(dead); !errors.Is(err, context.Canceled) {
		t.Errorf("wait with a dead context: %v", err)
	}
	b.postRecv(1)
	must(t, b.cq.Arm(false))
	a.post(rdma.SendWR{ID: 1, Op: rdma.OpSend})
	eventually(t, "a completion", func() bool { b.cq.(*cq).drive(); return b.cq.(*cq).len() == 1 })
	must(t, b.cq.Wait(dead))
}

// TestPostBesideAWaiter: one goroutine sleeps in Wait while another posts more
// than the socket holds. The waiter must go on when there is room, not when its
// slice ends.
func TestPostBesideAWaiter(t *testing.T) {
	// None is quick where nothing tells the waiter; a busy machine delays some.
	const enough, most = 15, 100
	e := newEnd(t, Config{SendBuffer: 256 << 10}, rdma.QPConfig{})
	p := scripted(t, e, 1, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := waiter(t, ctx, e.cq)
	quick := 0
	for i := 0; quick < enough && i < most; i++ {
		time.Sleep(3 * time.Millisecond) // the waiter sleeps again
		begin := time.Now()
		if _, err := e.qp.PostSend([]rdma.SendWR{{ID: uint64(i), Op: rdma.OpWrite, NumSGE: 1,
			SGE: [4]rdma.SGE{e.sge(0, 1<<20)}}}); err != nil {
			t.Fatal(err)
		}
		takeWrites(t, p, 1<<20)
		if time.Since(begin) <= 30*time.Millisecond {
			quick++
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("wait: %v", err)
	}
	if quick < enough {
		t.Errorf("%d of %d messages did not wait for the end of a slice", quick, most)
	}
}
