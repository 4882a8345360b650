package sched_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What is posted on a connection that is over holds back no other QP of its window.
func TestWhatIsPostedBehindAFailureHoldsNobodyBack(t *testing.T) {
	for _, local := range []bool{false, true} {
		for _, refused := range []bool{false, true} {
			a := newRigOn(t, newScript(local), sched.Config{Scope: sched.ScopeDevice, Slice: kib, Window: 4 * kib},
				16, 4)
			b := a.second("")
			if refused {
				a.far.refuses = func(w *rdma.SendWR) bool { return w.RKey != 0 }
				a.post(a.wr(1, rdma.OpWrite, 0, 2*kib))
			} else {
				a.post(a.wr(1, rdma.OpWrite, 0, 64*kib))
				must(t, a.qp.Fail())
			}
			a.far.refuses = nil
			a.post(a.wr(2, rdma.OpWrite, 0, 4*kib), a.wr(3, rdma.OpWrite, 0, 4*kib))
			if n := sched.GroupUnder(b.qp); n != 0 {
				t.Errorf("local %v, refused %v: %d bytes under way", local, refused, n)
			}
			b.post(b.wr(1, rdma.OpWrite, 0, 64*kib))
			if len(b.seen) != 4 {
				t.Errorf("local %v, refused %v: %d slices, want a whole window", local, refused, len(b.seen))
			}
			a.end()
			b.end()
		}
	}
}

// Behind a slice that the device refused, posts are flushed, each once, however many they are.
func TestPostsBehindARefusalAreFlushed(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 16 * kib}, 32, 4)
	r.far.refuses = func(w *rdma.SendWR) bool { return w.RKey == 1 && len(r.seen) > 2 }
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib))
	for i := range 16 {
		r.post(r.wr(2+i, rdma.OpWrite, 0, 4*kib))
	}
	all := r.end()
	ids, _ := told(all)
	if len(ids) != 17 || !slices.IsSorted(ids) {
		t.Fatalf("completions %v, want 1 to 17", ids)
	}
	tells(t, all[1:], ids[1:], rdma.StatusWRFlushErr)
}

// A request of which a part was refused has failed, though all that the device took of it succeeds.
func TestPartsBeforeARefusalAreNoSuccess(t *testing.T) {
	for refusal, want := range map[error]rdma.Status{rdma.ErrClosed: rdma.StatusWRFlushErr,
		rdma.ErrInvalid: rdma.StatusLocQPOpErr} {
		r := newRig(t, sched.Config{Slice: kib, Window: 4 * kib}, 8, 4)
		r.post(r.wr(1, rdma.OpWrite, 0, 6*kib))
		r.far.carryOut(4)
		r.far.refuses = func(*rdma.SendWR) bool { return true }
		r.far.refusedBy = refusal
		var two [2]rdma.WC
		if n, err := r.cq.Poll(two[:]); n != 0 || err != nil || len(r.seen) != 4 {
			t.Fatalf("%d completions, %v, %d slices", n, err, len(r.seen))
		}
		tells(t, r.end(), []uint64{1}, want)
	}
}

// A connection that ends without anything that waits needs no drain marker.
func TestNoMarkerBehindNothing(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 4 * kib}, 8, 4)
	if err := r.qp.Fail(); err != nil || r.far.calls != 0 {
		t.Errorf("%v, %d posts at the device, want none", err, r.far.calls)
	}
}

// A request that need not be cut goes below as it was posted, also when it had to wait: empty elements, too.
func TestWhatIsNotCutGoesBelowAsItIs(t *testing.T) {
	for _, op := range []rdma.Opcode{rdma.OpWrite, rdma.OpRead} {
		r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib}, 8, 4)
		w := r.wr(2, op, 0, 64)
		w.NumSGE = 3
		w.SGE[1] = rdma.SGE{Addr: r.mem.Addr() + 4096, LKey: 5}
		w.SGE[2] = rdma.SGE{Addr: r.mem.Addr() + 8192, Len: 32, LKey: 6}
		r.post(r.wr(1, rdma.OpWrite, 0, 8*kib), w)
		r.end()
		got := r.seen[len(r.seen)-1]
		if got.ID == 2 || got.RKey != 2 || got.NumSGE != 3 || got.SGE != w.SGE || got.RemoteAddr != w.RemoteAddr {
			t.Errorf("%s: %+v, want %+v", op, got, w)
		}
	}
}

// An inline request without bytes has none when it had to wait.
func TestNothingInlineStaysNothing(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib}, 8, 4)
	w := r.wr(2, rdma.OpSend, 0, 0)
	w.Flags |= rdma.Inline
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib), w)
	r.end()
	if got := r.seen[len(r.seen)-1]; got.RKey != 2 || got.NumSGE != 0 {
		t.Errorf("%+v, want no element", got)
	}
}

// What arrived before a queue pair was closed is whole, and its completion queues are free behind it.
func TestClosingTakesWhatArrived(t *testing.T) {
	for _, apart := range []bool{false, true} {
		dev := newScript(false)
		dev.apart = apart
		r, key := loopRigOn(t, dev, cutConfig)
		r.receive(101, 0, 8*kib, key)
		r.end()
		const size = 5*kib + 3
		r.post(r.wr(1, rdma.OpSend, 0, size))
		for r.far.carryOut(1<<20) > 0 {
			if _, err := r.cq.Poll(nil); err != nil { // which leaves completions there
				t.Fatal(err)
			}
		}
		must(t, r.qp.Close())
		var wcs [4]rdma.WC
		n, err := r.in.Poll(wcs[:])
		at := slices.IndexFunc(wcs[:n], func(wc rdma.WC) bool { return wc.ID == 101 })
		if err != nil || at < 0 || wcs[at].Status != rdma.StatusSuccess || wcs[at].ByteLen != size {
			t.Errorf("apart %v: %+v, %v, want %d bytes in 101", apart, wcs[:n], err, size)
		}
		if s, in := sched.Users(r.cq), sched.Users(r.in); s != 0 || in != 0 {
			t.Errorf("apart %v: %d and %d queue pairs are left in the queues", apart, s, in)
		}
	}
}

// What succeeded in silence before a queue pair was closed is not told as flushed.
func TestClosingLeavesSilentSuccessesSilent(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 64 * kib}, 16, 4)
	r.post(r.wr(1, rdma.OpWrite, 0, 8), r.wr(2, rdma.OpWrite, 0, 8))
	r.end()
	r.post(r.unsignaled(rdma.OpWrite, 1, 8*kib)...)
	if n := r.far.carryOut(8); n != 8 {
		t.Fatalf("%d slices, want 8", n)
	}
	must(t, r.qp.Close())
	tells(t, r.poll(), nil)
}

// A send as long as a slice is taken where longer ones are refused, also when it has to wait.
func TestASendAsLongAsASliceIsTaken(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib, Sends: sched.RefuseSends}, 8, 4)
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib), r.wr(2, rdma.OpSend, 0, kib))
	r.takes(0, rdma.ErrInvalid, r.wr(3, rdma.OpSend, 0, kib+1))
	tells(t, r.end(), []uint64{1, 2})
}

// Of private data, as much is taken as the tier says that there is room for.
func TestPrivateDataFillsItsRoom(t *testing.T) {
	for more, ok := range map[int]bool{0: true, 1: false} {
		dev := newScript(false)
		dev.loop = true
		tier := wrapped(t, dev, cutConfig)
		cq := need(tier.NewCQ(16))(t)
		q := need(tier.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 4}))(t)
		private := slices.Repeat([]byte{7}, tier.Caps().MaxPrivate+more)
		got, err := q.Connect(t.Context(), "", rdma.ConnParam{PrivateData: private})
		if (err == nil) != ok || ok && !slices.Equal(got.PrivateData, private) {
			t.Errorf("%d bytes more than there is room for: %v", more, err)
		}
		must(t, q.Close())
	}
}

// A refused slice ends the connection: its request fails, those before keep their order, the rest is flushed.
func TestDeviceRefusesASlice(t *testing.T) {
	for _, marker := range []bool{true, false} { // whether it takes the tier's last request
		for k := range 3 {
			r := newRig(t, sched.Config{Slice: kib, Window: 16 * kib}, 8, 4)
			n := 0
			r.far.refuses = func(w *rdma.SendWR) bool {
				if w.RKey == 2 {
					n++
				}
				return w.RKey == 2 && n > k || w.RKey == 0 && !marker
			}
			r.post(r.wr(1, rdma.OpWrite, 1, 2*kib))
			r.takes(2, nil, r.wr(2, rdma.OpWrite, 0, 4*kib), r.wr(3, rdma.OpWrite, 0, 4*kib))
			all := r.end()
			tells(t, all, []uint64{1, 2, 3})
			tells(t, all[1:], []uint64{2, 3}, rdma.StatusLocQPOpErr, rdma.StatusWRFlushErr)
		}
	}
}

// A mark that fails first says why: its status is that of the first request that is flushed.
func TestAFailedMarkIsBlamedOnTheFirstFlushed(t *testing.T) {
	r := newRigOn(t, newScript(true), sched.Config{Slice: kib, Window: 8 * kib}, 64, 4)
	mark := false
	r.far.onPost = func(w *rdma.SendWR) { mark = mark || w.RKey == 0 }
	r.post(r.wr(1, rdma.OpWrite, 0, 32*kib), r.wr(2, rdma.OpWrite, 0, kib))
	if !mark {
		t.Fatal("no mark")
	}
	at := slices.IndexFunc(r.far.queue, func(e scriptEntry) bool { return e.wr.RKey == 0 })
	r.far.failAfter, r.far.status = at, rdma.StatusRemAccessErr
	r.far.carryOut(at + 1)
	tells(t, r.end(), []uint64{1, 2}, rdma.StatusRemAccessErr, rdma.StatusWRFlushErr)
}

// A failure behind requests of which nobody hears is found, and ends what waits.
func TestAFailureBehindUnsignalledRequests(t *testing.T) {
	r := newRig(t, sched.Config{Slice: 4 * kib, Window: 4 * kib}, 16, 4)
	r.post(append(r.unsignaled(rdma.OpWrite, 1, 512), r.wr(2, rdma.OpWrite, 0, 8), r.wr(3, rdma.OpWrite, 0, 4*kib))...)
	if len(r.seen) != 2 {
		t.Fatalf("%d requests at the device, want 2, and the third to wait", len(r.seen))
	}
	r.far.failAfter, r.far.status = 1, rdma.StatusRemAccessErr
	tells(t, r.end(), []uint64{2, 3}, rdma.StatusRemAccessErr, rdma.StatusWRFlushErr)
}

// One queue pair that is closed takes nothing from another of the same queue.
func TestClosingOneLeavesTheOther(t *testing.T) {
	a := newRig(t, sched.Config{Slice: kib, Window: 4 * kib}, 8, 4)
	q := need(a.tier.NewQP(rdma.QPConfig{SendCQ: a.cq, RecvCQ: a.cq, SendDepth: 8}))(t)
	a.post(a.wr(1, rdma.OpWrite, 0, 16*kib))
	must(t, q.Close())
	tells(t, a.end(), []uint64{1})
}

// A poll for nothing drives what waits.
func TestPollForNothingPostsWhatWaits(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 4 * kib}, 8, 4)
	r.post(r.wr(1, rdma.OpWrite, 0, 16*kib))
	r.far.carryOut(4)
	if n, err := r.cq.Poll(nil); n != 0 || err != nil || len(r.seen) != 8 {
		t.Errorf("%d, %v, %d slices at the device, want 8", n, err, len(r.seen))
	}
	r.end()
}

// One poll looks past what the user does not see, and tells what that has uncovered.
func TestOnePollFindsWhatTheUserSees(t *testing.T) {
	r := newRig(t, sched.Config{Slice: 4 * kib, Window: 16 * kib}, 16, 4)
	r.post(append(r.unsignaled(rdma.OpWrite, 4, kib), r.wr(9, rdma.OpWrite, 0, 8))...) // the fourth is a mark
	r.far.carryOut(5)
	var one [1]rdma.WC
	if n, err := r.cq.Poll(one[:]); n != 1 || err != nil || one[0].ID != 9 {
		t.Errorf("%d, %v, completion of %d, want 9", n, err, one[0].ID)
	}
	r = newRig(t, sched.Config{Slice: kib, Window: 2 * kib}, 8, 4)
	r.post(append(r.unsignaled(rdma.OpWrite, 1, 3*kib), r.wr(2, rdma.OpSend, 7, 64))...)
	r.far.carryOut(3)
	r.poll()
	r.far.carryOut(3)
	var some [4]rdma.WC
	if n, err := r.cq.Poll(some[:]); n != 1 || err != nil || some[0].ID != 2 {
		t.Errorf("%d, %v, completion of %d, want the one that was held", n, err, some[0].ID)
	}
}

// Disconnect posts what waits before it ends the connection, if there is time.
func TestDisconnectPostsWhatWaits(t *testing.T) {
	dev := newScript(false)
	dev.onPoll = func(*nullCQ) { dev.qps[0].carryOut(1) }
	r := newRigOn(t, dev, sched.Config{Slice: kib, Window: 2 * kib}, 8, 4)
	r.post(r.wr(1, rdma.OpWrite, 0, 32*kib))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := r.qp.Disconnect(ctx); err != nil || ctx.Err() != nil || len(r.seen) != 32 {
		t.Errorf("%v, %v, %d slices at the device, want 32", err, ctx.Err(), len(r.seen))
	}
	r.post(r.wr(2, rdma.OpWrite, 0, 32*kib)) // is flushed
	if ids, _ := told(r.poll()); !slices.Contains(ids, 2) {
		t.Errorf("completions %v, want that of 2", ids)
	}
}
