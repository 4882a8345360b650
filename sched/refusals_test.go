package sched_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A device that refuses a slice ends the connection. That request has failed by it, what was
// posted before keeps its order, and what waited is flushed, each once.
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
			n0, err := r.qp.PostSend([]rdma.SendWR{r.wr(2, rdma.OpWrite, 0, 4*kib), r.wr(3, rdma.OpWrite, 0, 4*kib)})
			if n0 != 2 || err != nil {
				t.Fatalf("post: %d, %v", n0, err)
			}
			ids, st := told(r.end())
			if want := []uint64{1, 2, 3}; !slices.Equal(ids, want) {
				t.Errorf("refused after %d, marker %v: completions %v %v, want %v", k, marker, ids, st, want)
				continue
			}
			if st[1] != rdma.StatusLocQPOpErr || st[2] != rdma.StatusWRFlushErr {
				t.Errorf("refused after %d, marker %v: %v", k, marker, st)
			}
		}
	}
}

// A mark that fails first says why: its status is that of the first request that is flushed.
func TestAFailedMarkIsBlamedOnTheFirstFlushed(t *testing.T) {
	r := newRigOn(t, newScript(true), sched.Config{Slice: kib, Window: 8 * kib}, 64, 4)
	mark := false
	r.far.onPost = func(w *rdma.SendWR) { mark = mark || w.RKey == 0 }
	r.post(r.wr(1, rdma.OpWrite, 0, 32*kib), r.wr(2, rdma.OpWrite, 0, kib))
	for !mark {
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
	if _, err := r.qp.PostSend([]rdma.SendWR{r.wr(2, rdma.OpWrite, 0, 32*kib)}); err != nil {
		t.Errorf("a post behind it: %v, want one that is flushed", err)
	}
	if ids, _ := told(r.poll()); !slices.Contains(ids, 2) {
		t.Errorf("completions %v, want that of 2", ids)
	}
}
