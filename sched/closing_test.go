package sched_test

import (
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What arrived before a queue pair was closed is whole, also where receives complete in a queue
// of their own, and that queue is free behind it.
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
	if ids, st := told(r.poll()); len(ids) > 0 {
		t.Errorf("completions %v %v, want none", ids, st)
	}
}

// A send as long as a slice is taken where longer ones are refused, also when it has to wait.
func TestASendAsLongAsASliceIsTaken(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib, Sends: sched.RefuseSends}, 8, 4)
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib), r.wr(2, rdma.OpSend, 0, kib))
	if n, err := r.qp.PostSend([]rdma.SendWR{r.wr(3, rdma.OpSend, 0, kib+1)}); n != 0 || err != rdma.ErrInvalid {
		t.Errorf("a byte more: %d, %v, want %v", n, err, rdma.ErrInvalid)
	}
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
