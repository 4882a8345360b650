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

// parkedPair are two ends of which b posts one receive of n octets and parks on it. The poller reports nothing, and the
// background goroutine drives nothing: what does not end the parking is lost.
func parkedPair(t *testing.T, ctx context.Context, n int) (a, b *end, done chan error) {
	t.Helper()
	a, b = pair(t, Config{}, rdma.QPConfig{})
	echoOnce(t, a, b) // a passive side sends nothing before that
	must(t, b.dev.bg.p.Remove(b.qp.(*qp).conn))
	b.postRecv(1, b.sge(1<<20, n))
	must(t, b.cq.Arm(false))
	done = waiter(t, rdma.Parked(ctx), b.cq)
	b.parks()
	return a, b, done
}

// parks returns when the waiter of e is parked.
func (e *end) parks() {
	e.t.Helper()
	c := e.cq.(*cq)
	eventually(e.t, "a parked waiter", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.parked.Load() != nil && c.asleep
	})
}

func ends(t *testing.T, done chan error, want error) {
	t.Helper()
	select {
	case err := <-done:
		if !errors.Is(err, want) {
			t.Errorf("the wait ends with %v, want %v", err, want)
		}
	case <-time.After(testTimeout):
		t.Fatal("the wait does not end")
	}
}

func TestAParkedWaitEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	send := func(n int) func(a, b *end) {
		return func(a, b *end) {
			a.fill(7, 0, n)
			a.post(rdma.SendWR{Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, n)}})
			a.want(nil, rdma.WCSend, 0, rdma.StatusSuccess)
		}
	}
	for name, tc := range map[string]struct {
		ctx  context.Context
		do   func(a, b *end)
		want error
		n    int
	}{
		"by a message":           {t.Context(), send(8), nil, 8},
		"by one of many reads":   {t.Context(), send(1 << 20), nil, 1 << 20},
		"by its context":         {ctx, func(_, _ *end) { cancel() }, context.Canceled, 8},
		"by a failure here":      {t.Context(), func(_, b *end) { must(t, b.qp.Fail()) }, nil, 8},
		"by the peer's end":      {t.Context(), func(a, _ *end) { a.qp.Close() }, nil, 8},
		"by a reset":             {t.Context(), func(a, _ *end) { a.abort() }, nil, 8},
		"by the QP's end":        {t.Context(), func(_, b *end) { b.qp.Close() }, nil, 8},
		"by a completion of its": {t.Context(), writeHere, nil, 8},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, done := parkedPair(t, tc.ctx, tc.n)
			tc.do(a, b)
			ends(t, done, tc.want)
			if tc.n > 8 {
				b.want(nil, rdma.WCRecv, 1, rdma.StatusSuccess)
				equal(t, "message", b.bytes(1<<20, tc.n), a.bytes(0, tc.n))
			}
		})
	}
}

func (e *end) abort() {
	q := e.qp.(*qp)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.drop(true)
}

// writeHere completes a write of the waiting side, which another goroutine posts.
func writeHere(a, b *end) { b.post(b.remote(rdma.OpWrite, 2, 0, 8, a)) }

func TestAParkedWaitEndsByItsDeadline(t *testing.T) {
	_, b := pair(t, Config{}, rdma.QPConfig{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := b.cq.Wait(rdma.Parked(ctx)); !errors.Is(err, context.DeadlineExceeded) || b.cq.(*cq).park == nil {
		t.Errorf("it ends with %v, parked on %v", err, b.cq.(*cq).park)
	}
}

// What is placed without a completion ends no wait, and nothing behind it is lost.
func TestAParkedWaitPlacesWhatCompletesNothing(t *testing.T) {
	a, b, done := parkedPair(t, t.Context(), 8)
	for i := range uint64(200) {
		a.fill(i, 0, 100_000)
		a.post(a.remote(rdma.OpWrite, i, 0, 100_000, b))
		a.want(nil, rdma.WCWrite, i, rdma.StatusSuccess)
		a.post(a.remote(rdma.OpRead, i, 1<<20, 100_000, b))
		a.want(nil, rdma.WCRead, i, rdma.StatusSuccess)
		equal(t, "read back", a.bytes(1<<20, 100_000), a.bytes(0, 100_000))
	}
	select {
	case err := <-done:
		t.Fatalf("writes end the wait: %v", err)
	default:
	}
	a.post(rdma.SendWR{Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)}})
	a.want(nil, rdma.WCSend, 0, rdma.StatusSuccess)
	ends(t, done, nil)
}

// Octets that another goroutine posts and that find no room go on when there is some.
func TestAParkedWaitNoticesRoom(t *testing.T) {
	a, b, done := parkedPair(t, t.Context(), 8)
	taker, q := a.qp.(*qp), b.qp.(*qp)
	taker.mu.Lock() // it takes nothing
	write := b.remote(rdma.OpWrite, 0, 0, window, a)
	full := false
	for n := 0; n < 8 && !full; n++ {
		need(b.qp.PostSend([]rdma.SendWR{write}))(t)
		q.mu.Lock()
		full = q.tx.unsent()
		q.mu.Unlock()
	}
	before := q.activity.Load()
	time.Sleep(50 * time.Millisecond)
	looks := q.activity.Load() - before
	taker.mu.Unlock()
	if looks > 100 {
		t.Errorf("%d looks in 50 ms at a socket without room", looks)
	}
	if !full {
		t.Fatal("a socket takes 32 MiB that nobody reads")
	}
	b.post(b.remote(rdma.OpWrite, 9, 0, 8, a))
	ends(t, done, nil)
	b.want(nil, rdma.WCWrite, 9, rdma.StatusSuccess)
}

// A second waiter, and a second QP, are noticed by the first, and by each other.
func TestAParkedWaitIsNotAlone(t *testing.T) {
	_, b, done := parkedPair(t, t.Context(), 8)
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() { second <- b.cq.Wait(rdma.Parked(ctx)) }()
	eventually(t, "nobody parks on a socket", func() bool { return b.cq.(*cq).parked.Load() == nil })
	looks := b.qp.(*qp).activity.Load()
	time.Sleep(20 * time.Millisecond)
	if looks = b.qp.(*qp).activity.Load() - looks; looks > 100 {
		t.Errorf("two waiters look %d times in 20 ms", looks)
	}
	cancel()
	ends(t, second, context.Canceled)
	b.parks()

	q := need(b.dev.NewQP(rdma.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, SendDepth: 8, RecvDepth: 8}))(t)
	defer q.Close()
	need(q.PostRecv([]rdma.RecvWR{{ID: 5, NumSGE: 1, SGE: [4]rdma.SGE{b.sge(0, 8)}}}))(t)
	other := newEnd(t, Config{}, rdma.QPConfig{})
	join(t, other, &end{t: t, dev: b.dev, qp: q})
	other.post(rdma.SendWR{Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{other.sge(0, 8)}})
	other.want(nil, rdma.WCSend, 0, rdma.StatusSuccess)
	ends(t, done, nil)
	b.want(nil, rdma.WCRecv, 5, rdma.StatusSuccess)
}

// unparks counts how often a parking was ended from outside.
type unparks struct {
	stream.Conn
	n atomic.Int32
}

func (u *unparks) Unpark() { u.n.Add(1); u.Conn.Unpark() }

// A message costs a parked waiter the read that brings it and one before, no look at the poller, and no wake-up of itself.
func TestAParkedWaitCostsTwoReads(t *testing.T) {
	const rounds = 200
	a, b, done := parkedPair(t, t.Context(), 8)
	ctx := rdma.Parked(t.Context())
	send := []rdma.SendWR{{Op: rdma.OpSend, Flags: rdma.Signaled, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)}}}
	recv := []rdma.RecvWR{{NumSGE: 1, SGE: [4]rdma.SGE{b.sge(0, 8)}}}
	round := func(between func()) {
		need(a.qp.PostSend(send))(t)
		need(a.cq.Poll(a.wcs))(t)
		ends(t, done, nil)
		between()
		need(b.cq.Poll(b.wcs))(t)
		need(b.qp.PostRecv(recv))(t)
		must(t, b.cq.Arm(false))
		if n, err := b.cq.Poll(b.wcs); n != 0 || err != nil {
			t.Fatalf("behind the message: %d completions, %v", n, err)
		}
		go func() { done <- b.cq.Wait(ctx) }()
		b.parks()
	}
	park := b.cq.(*cq).park
	count := &unparks{Conn: park.conn}
	round(func() { park.conn = count }) // while nobody is parked
	before := stream.KernelCalls()
	for range rounds {
		round(func() {})
	}
	if n := count.n.Load(); n > 0 {
		t.Errorf("%d wake-ups for what the waiter itself read", n)
	}
	after := stream.KernelCalls()
	if n := after.Poll - before.Poll; n > rounds/2 { // background goroutines look now and then
		t.Errorf("%d looks at pollers for %d messages", n, rounds)
	}
	if n := after.Recv - before.Recv; n > rounds*5/2 {
		t.Errorf("%d reads for %d messages, want 2 each", n, rounds)
	}
	need(a.qp.PostSend(send))(t)
	ends(t, done, nil)
}
