package iwarp

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// TestPassiveTarget: requests complete at a target whose application does nothing, sleeps, or was busy before.
func TestPassiveTarget(t *testing.T) {
	for name, idle := range map[string]func(t *testing.T, b *end){
		"never polled": func(*testing.T, *end) {},
		"polled until now": func(_ *testing.T, b *end) {
			for range 1000 {
				b.cq.Poll(b.wcs)
			}
		},
		"sleeps in wait": func(t *testing.T, b *end) {
			ctx, cancel := context.WithCancel(context.Background())
			done := waiter(t, ctx, b.cq)
			t.Cleanup(func() {
				cancel()
				if err := <-done; !errors.Is(err, context.Canceled) {
					t.Errorf("wait: %v", err)
				}
			})
		},
		"slept in wait": func(t *testing.T, b *end) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			if err := b.cq.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("wait: %v", err)
			}
		},
	} {
		cfgs := []string{"crc"}
		if name == "never polled" {
			cfgs = []string{"crc", "nocrc", "markers", "p2p", "buffers"}
		}
		for _, cfg := range cfgs {
			t.Run(name+"/"+cfg, func(t *testing.T) {
				a, b := pair(t, configs[cfg], rdma.QPConfig{})
				b.postRecv(1, b.sge(3<<20, 1<<20))
				idle(t, b)
				for i, n := range []int{1, 0, 4000, 70000, 1 << 20, 0, 3} {
					id := uint64(i)
					a.fill(id, 0, n)
					a.post(a.remote(rdma.OpWrite, id, 0, n, b))
					a.post(a.remote(rdma.OpRead, 100+id, 1<<20, n, b))
					a.want(nil, rdma.WCWrite, id, rdma.StatusSuccess)
					a.want(nil, rdma.WCRead, 100+id, rdma.StatusSuccess)
					equal(t, "read back", a.bytes(1<<20, n), a.bytes(0, n))
				}
				a.post(rdma.SendWR{ID: 7, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 1<<20)}})
				a.want(nil, rdma.WCSend, 7, rdma.StatusSuccess)
				eventually(t, "the message to arrive", func() bool { return b.cq.(*cq).len() == 1 })
			})
		}
	}
}

// TestBothPassive: neither side polls after the posts; the background goroutines carry both directions to the end.
func TestBothPassive(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	const n = 10
	a.fill(1, 0, 1<<20)
	b.fill(2, 0, 1<<20)
	for i := range n {
		a.post(rdma.SendWR{ID: uint64(i), Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 1<<20)},
			RKey: b.mr.RKey(), RemoteAddr: b.mr.Addr() + 1<<20})
		b.post(b.remote(rdma.OpRead, uint64(i), 2<<20, 1<<20, a))
	}
	eventually(t, "all completions", func() bool { return a.cq.(*cq).len() == n && b.cq.(*cq).len() == n })
	for i := range n {
		a.want(nil, rdma.WCWrite, uint64(i), rdma.StatusSuccess)
		b.want(nil, rdma.WCRead, uint64(i), rdma.StatusSuccess)
	}
	// A later read proves that the writes are there.
	a.post(a.remote(rdma.OpRead, 99, 3<<20, 8, b))
	a.want(nil, rdma.WCRead, 99, rdma.StatusSuccess)
	if !bytes.Equal(b.bytes(1<<20, 1<<20), a.bytes(0, 1<<20)) ||
		!bytes.Equal(b.bytes(2<<20, 1<<20), a.bytes(0, 1<<20)) {
		t.Error("data differs")
	}
}

// TestTargetThatLeftWait: an application that left Wait is noticed within a few watchPeriods.
func TestTargetThatLeftWait(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	read := func() time.Duration {
		begin := time.Now()
		a.post(a.remote(rdma.OpRead, 1, 0, 8, b))
		a.want(nil, rdma.WCRead, 1, rdma.StatusSuccess)
		return time.Since(begin)
	}
	// Few are quick where nobody notices; a busy machine delays some.
	const enough, most = 6, 24
	quick, rounds := 0, 0
	for ; quick < enough && rounds < most; rounds++ {
		ctx, cancel := context.WithCancel(t.Context())
		done := waiter(t, ctx, b.cq)
		read() // while somebody waits, so that the waiter counts as active
		time.Sleep(6 * watchPeriod)
		cancel()
		<-done
		if read() <= waitSlice/2 {
			quick++
		}
	}
	if quick < enough {
		t.Errorf("%d of %d reads did not wait for the end of a slice", quick, rounds)
	}
}

// TestAnIdleWaiterLeavesSocketsAlone: nobody looks at an idle QP of a sleeper, and what happens is noticed.
func TestAnIdleWaiterLeavesSocketsAlone(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	b.postRecv(1, b.sge(0, 64))
	must(t, b.cq.Arm(false))
	done := waiter(t, t.Context(), b.cq)
	looks := func() uint64 { return uint64(b.qp.(*qp).activity.Load()) }
	// It may look once or twice before it sleeps.
	for before := looks() + 1; before != looks(); {
		before = looks()
		time.Sleep(waitSlice / 2)
	}
	before := looks()
	time.Sleep(3 * waitSlice)
	if n := looks() - before; n != 0 {
		t.Errorf("%d looks at a socket where nothing happened", n)
	}
	a.post(rdma.SendWR{ID: 1, Op: rdma.OpSend, NumSGE: 1, SGE: [4]rdma.SGE{a.sge(0, 8)}})
	must(t, <-done)
}

// TestATurnOfSendingEnds: where both sides send long messages, a turn does not fill the socket, and the rest follows by
// itself. A stream of one way has no such turns.
func TestATurnOfSendingEnds(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	q, ended := a.qp.(*qp), 0
	const oneWay = 20
	for i := range oneWay + 50 {
		if i == oneWay {
			if ended > 0 {
				t.Errorf("%d turns of %d ended though nobody sends the other way", ended, oneWay)
			}
			ended = 0
			// A write that happens to be read by whole segments does not count as bulk.
			eventually(t, "the other way's bulk", func() bool {
				b.post(rdma.SendWR{ID: 500, Op: rdma.OpWrite, NumSGE: 1, SGE: [4]rdma.SGE{b.sge(2<<20, 1<<20)},
					RKey: a.mr.RKey(), RemoteAddr: a.mr.Addr() + 2<<20})
				b.want(a, rdma.WCWrite, 500, rdma.StatusSuccess)
				b.post(b.remote(rdma.OpRead, 501, 3<<20, 8, a))
				b.want(a, rdma.WCRead, 501, rdma.StatusSuccess) // a has all of the write
				return locked(q, func() bool { return q.rx.bulk > 0 && !q.rx.direct })
			})
		}
		a.fill(uint64(i), 0, 2<<20)
		before := locked(q, func() uint64 { return q.tx.sent })
		a.post(a.remote(rdma.OpWrite, uint64(i), 0, 2<<20, b))
		// The background may have gone on before this look, so not each post shows its turn.
		q.mu.Lock()
		if sent := q.tx.sent - before; q.tx.more && sent >= sendTurn && sent <= sendTurn+flushAt+(64<<10) {
			ended++
		}
		q.mu.Unlock()
		eventually(t, "the completion", func() bool { return a.cq.(*cq).len() == 1 })
		a.want(nil, rdma.WCWrite, uint64(i), rdma.StatusSuccess)
	}
	if ended == 0 {
		t.Errorf("no turn of 50 ended between %d octets and a batch more", sendTurn)
	}
	a.post(a.remote(rdma.OpRead, 99, 3<<20, 8, b))
	a.want(nil, rdma.WCRead, 99, rdma.StatusSuccess)
	equal(t, "what the last one wrote", b.bytes(0, 2<<20), a.bytes(0, 2<<20))
}

// TestATurnDoesNotEndBeforeALittleRest: no more than sendRest, in few messages, goes with the turn.
func TestATurnDoesNotEndBeforeALittleRest(t *testing.T) {
	for _, c := range []struct {
		parts, more int
		ends        bool
	}{{1, 0, false}, {1, sendRest, true}, {4, 0, false}, {4, sendRest, true}, {64, 0, false}, {128, 0, true}} {
		a, b := pair(t, Config{SendBuffer: 4 << 20}, rdma.QPConfig{})
		q := a.qp.(*qp)
		q.mu.Lock()
		for i := range c.parts {
			n := (sendTurn + sendRest + c.more) / c.parts
			wr := a.remote(rdma.OpWrite, uint64(i), 0, n, b)
			must(t, q.enqueue(&wr))
		}
		q.rx.bulk = bulkMemory
		q.transmit()
		if q.tx.more != c.ends {
			t.Errorf("%d octets in %d messages: the turn ended: %t, want %t", sendTurn+sendRest+c.more, c.parts,
				q.tx.more, c.ends)
		}
		q.releaseMemory()
		q.mu.Unlock()
	}
}

// TestARestIsNotLittleBesideAnswers: what a peer has asked for is not in what is posted.
func TestARestIsNotLittleBesideAnswers(t *testing.T) {
	a, _ := pair(t, Config{}, rdma.QPConfig{})
	q := a.qp.(*qp)
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.posted(0) {
		t.Error("nothing is posted, and something is left")
	}
	q.irq.push(0)
	if q.posted(sendRest) {
		t.Error("an answer that is due counts for nothing")
	}
	q.irq = newFIFO(1)
}

// TestNobodyAsksForRoomBehindATurn: behind all that was posted, or a stream that ends, no turn is due.
func TestNobodyAsksForRoomBehindATurn(t *testing.T) {
	for n := sendTurn + sendRest - 128<<10; n <= sendTurn+sendRest+128<<10; n += 16 << 10 {
		a, b := pair(t, Config{}, rdma.QPConfig{})
		q := a.qp.(*qp)
		q.mu.Lock()
		q.rx.bulk = bulkMemory
		q.mu.Unlock()
		a.post(a.remote(rdma.OpWrite, 1, 0, n, b))
		a.want(nil, rdma.WCWrite, 1, rdma.StatusSuccess)
		a.cq.Poll(a.wcs)
		if locked(q, q.tx.unsent) {
			t.Errorf("%d octets are complete, and yet another turn is due", n)
		}
	}
	a, b := pair(t, Config{}, rdma.QPConfig{})
	q := a.qp.(*qp)
	q.mu.Lock()
	defer q.mu.Unlock()
	wr := a.remote(rdma.OpWrite, 1, 0, 2<<20, b)
	must(t, q.enqueue(&wr))
	q.rx.bulk = bulkMemory
	if q.transmit(); !q.tx.more {
		t.Fatal("the turn did not end, so that nothing is shown")
	}
	if q.releaseMemory(); q.tx.more {
		t.Error("a stream that ends waits for another turn")
	}
}

// slicesWithMarks are writes of size octets, each with a read of nothing behind it, as a scheduler posts its marks.
func slicesWithMarks(a, b *end, writes, size int) (wrs []rdma.SendWR) {
	for i := range writes {
		wrs = append(wrs, a.remote(rdma.OpWrite, 0, 0, size, b),
			rdma.SendWR{ID: uint64(i), Op: rdma.OpRead, Flags: rdma.Signaled})
	}
	return wrs
}

// A mark behind a slice is in the same call to the socket.
func TestAReadLeavesWithTheDataBeforeIt(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	must(t, a.qp.Drain())
	need(a.qp.PostSend(slicesWithMarks(a, b, 2, 120<<10)))(t)
	q := a.qp.(*qp)
	q.mu.Lock()
	q.setState(rdma.QPRTS)
	q.frameSome()
	if n := q.sqNext - q.sqHead; n != 2 {
		t.Errorf("the first batch has %d requests, want a write and its mark", n)
	}
	q.transmit()
	q.mu.Unlock()
	for i := range uint64(2) {
		a.want(b, rdma.WCRead, i, rdma.StatusSuccess)
	}
}

// A sender whose window is full waits for the answer to its first mark: it does not wait for the data behind that, too.
func TestAReadIsAnsweredBeforeTheDataBehindIt(t *testing.T) {
	a, b := pair(t, Config{}, rdma.QPConfig{})
	q := b.qp.(*qp)
	q.mu.Lock()
	need(a.qp.PostSend(slicesWithMarks(a, b, 4, 120<<10)))(t)
	s := a.qp.(*qp)
	s.soon(t, "the socket to take all", func() bool { return s.tx.empty() && s.sqNext == s.sqTail })
	eventually(t, "a read", func() bool {
		q.receive()
		return q.irq.len() > 0
	})
	if n := q.irq.len(); n != 1 {
		t.Errorf("%d reads wait for their answers, want 1", n)
	}
	q.mu.Unlock()
	for i := range uint64(4) {
		a.want(b, rdma.WCRead, i, rdma.StatusSuccess)
	}
}
