package memdev

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestOverrunLosesOneCQAndItsQPOnly(t *testing.T) {
	f := NewFabric(Config{})
	sa := ordinary()
	sa.cq = 4
	a, b := newSide(t, f, "a", sa), newSide(t, f, "b", ordinary())
	connect(t, a, b)
	// A second QP of the same device with queues of its own.
	otherCQ := must(a.dev.NewCQ(4))(t)
	otherQP := must(a.dev.NewQP(rdma.QPConfig{SendCQ: otherCQ, RecvCQ: otherCQ}))(t)
	c := newSide(t, f, "c", ordinary())
	connect(t, &side{dev: a.dev, qp: otherQP}, c)

	for i := range uint64(5) {
		a.post(b.at(0, wr(rdma.OpWrite, i, a.sge(0, 1))))
	}
	same(t, "events", a.events(), []rdma.EventType{rdma.EventCQError, rdma.EventQPFatal})
	same(t, "the QP", a.qp.State(), rdma.QPErr)
	var wcs [8]rdma.WC
	if n, err := a.sq.Poll(wcs[:]); n != 4 || err != rdma.ErrCQOverrun {
		t.Errorf("Poll = %d, %v, want the 4 kept and ErrCQOverrun", n, err)
	}
	if err := a.sq.Arm(false); err != rdma.ErrCQOverrun {
		t.Errorf("Arm = %v, want ErrCQOverrun", err)
	}
	if err := a.sq.Wait(soon(t)); err != rdma.ErrCQOverrun {
		t.Errorf("Wait = %v, want ErrCQOverrun", err)
	}

	w := c.at(0, wr(rdma.OpWrite, 1, c.sge(0, 0)))
	if n, err := otherQP.PostSend([]rdma.SendWR{w}); n != 1 || err != nil {
		t.Fatalf("PostSend on the other QP = %d, %v", n, err)
	}
	same(t, "the other CQ", outcomes(t, otherCQ), good(1))
	ok(t, otherQP.Close())
	ok(t, otherCQ.Close())
}

// fired reports whether one event is there now.
func fired(t *testing.T, c rdma.CQ) bool {
	t.Helper()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	switch err := c.Wait(ended); {
	case err == nil:
		return true
	case errors.Is(err, context.Canceled):
		return false
	default:
		t.Fatal(err)
		return false
	}
}

func TestArmedCQ(t *testing.T) {
	plain := func(a *side) rdma.SendWR { return wr(rdma.OpSend, 1) }
	solicited := func(a *side) rdma.SendWR {
		w := wr(rdma.OpSend, 1)
		w.Flags |= rdma.Solicited
		return w
	}
	failing := func(a *side) rdma.SendWR { return wr(rdma.OpSend, 1, a.sge(0, 9)) } // too long
	yes := true
	tests := []struct {
		name string
		arm  []bool // solicitedOnly
		req  func(a *side) rdma.SendWR
		want bool
	}{
		{"not armed", nil, plain, !yes},
		{"any", []bool{false}, plain, yes},
		{"solicited only, plain send", []bool{true}, plain, !yes},
		{"solicited only, solicited send", []bool{true}, solicited, yes},
		{"solicited only, failed receive", []bool{true}, failing, yes},
		{"upgraded to any", []bool{true, false}, plain, yes},
		{"any cannot be weakened", []bool{false, true}, plain, yes},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			a, b, _ := newPair(t, Config{})
			b.recv(1, b.sge(0, 8))
			b.recv(2, b.sge(0, 8))
			for _, only := range tc.arm {
				ok(t, b.rq.Arm(only))
			}
			a.post(tc.req(a))
			if got := fired(t, b.rq); got != tc.want {
				t.Errorf("event = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestEventsAreOneShotAndCounted(t *testing.T) {
	a, b, _ := newPair(t, Config{})
	for i := range uint64(8) {
		b.recv(i)
	}
	a.post(wr(rdma.OpSend, 1))
	ok(t, b.rq.Arm(false))
	if fired(t, b.rq) {
		t.Error("a completion already waiting raised an event")
	}
	a.post(wr(rdma.OpSend, 1))
	a.post(wr(rdma.OpSend, 1))
	ok(t, b.rq.Arm(false))
	a.post(wr(rdma.OpSend, 1))
	for i, want := range []bool{true, true, false} {
		if got := fired(t, b.rq); got != want {
			t.Errorf("event %d after two armings = %v, want %v", i, got, want)
		}
	}
}

func TestWriteImmCanBeSolicited(t *testing.T) {
	a, b, _ := newPair(t, Config{})
	b.recv(1)
	ok(t, b.rq.Arm(true))
	w := wr(rdma.OpWriteImm, 1)
	w.Flags |= rdma.Solicited
	a.post(w)
	if !fired(t, b.rq) {
		t.Error("no event")
	}
}

func TestWaitIsWokenByClose(t *testing.T) {
	d := must(NewFabric(Config{}).Open(""))(t)
	c := must(d.NewCQ(1))(t)
	errs := make(chan error)
	for range 2 {
		go func() { errs <- c.Wait(soon(t)) }()
	}
	ok(t, c.Close())
	for range 2 {
		if err := <-errs; err != rdma.ErrClosed {
			t.Errorf("Wait = %v, want ErrClosed", err)
		}
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	a, _, _ := newPair(t, Config{})
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := a.sq.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait = %v, want the deadline", err)
	}
}

// Nobody polls while the timer runs: the waiter itself must do the work.
func TestWaitDrivesTimers(t *testing.T) {
	tests := map[string]struct {
		cfg  Config
		req  func(a, b *side) rdma.SendWR
		want rdma.Status
	}{
		"a delayed answer": {Config{ReadDelay: time.Second}, func(a, b *side) rdma.SendWR {
			return b.at(0, wr(rdma.OpRead, 1, a.sge(0, 8)))
		}, rdma.StatusSuccess},
		"tries used up": {Config{RNRTimer: time.Second}, func(a, b *side) rdma.SendWR { return wr(rdma.OpSend, 1) },
			rdma.StatusRNRRetryExcErr},
	}
	for name, tc := range tests {
		for _, early := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b, _ := newPair(t, tc.cfg, func(a, _ *setup) { a.param.RNRRetry = 1 })
					ok(t, a.sq.Arm(false))
					post := func() { a.post(tc.req(a, b)) }
					if early {
						post()
					} else {
						go func() { // the timer starts while Wait sleeps
							time.Sleep(time.Second)
							post()
						}()
					}
					ok(t, a.sq.Wait(context.Background()))
					same(t, "completion", outcomes(t, a.sq), all(tc.want, 1))
				})
			})
		}
	}
}

func TestNoWakeUpIsLost(t *testing.T) {
	const messages = 3000
	a, b, _ := newPair(t, Config{}, func(a, _ *setup) { a.param.RNRRetry = rnrForever })
	var wg sync.WaitGroup
	wg.Go(func() {
		var wcs [1]rdma.WC
		for range messages {
			if n, err := a.qp.PostSend([]rdma.SendWR{wr(rdma.OpSend, 1)}); n != 1 || err != nil {
				t.Errorf("PostSend = %d, %v", n, err)
				return
			}
			for n := 0; n == 0; {
				n, _ = a.sq.Poll(wcs[:])
			}
		}
	})
	b.recv(1)
	var wcs [4]rdma.WC
	ctx := soon(t)
	for got := 0; got < messages; {
		ok(t, b.rq.Arm(false))
		n, err := b.rq.Poll(wcs[:])
		ok(t, err)
		for range n {
			b.recv(1)
		}
		if got += n; n == 0 {
			ok(t, b.rq.Wait(ctx))
		}
	}
	wg.Wait()
}

func TestEachCompletionIsPolledOnce(t *testing.T) {
	a, b, _ := newPair(t, Config{}, func(a, _ *setup) { a.qp.SendDepth = 2000; a.cq = 2000 })
	for i := range uint64(2000) {
		a.post(b.at(0, wr(rdma.OpWrite, i, a.sge(0, 1))))
	}
	var mu sync.Mutex
	seen := map[uint64]int{}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			var wcs [3]rdma.WC
			for {
				n, err := a.sq.Poll(wcs[:])
				if n == 0 || err != nil {
					return
				}
				mu.Lock()
				for _, wc := range wcs[:n] {
					seen[wc.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for i := range uint64(2000) {
		if seen[i] != 1 {
			t.Errorf("completion %d polled %d times", i, seen[i])
		}
	}
}
