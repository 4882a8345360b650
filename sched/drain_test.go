package sched_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// drainRig is on a device that can be drained, with a window of two slices.
func drainRig(t *testing.T) *rig {
	t.Helper()
	dev := newScript(false)
	dev.caps.Features |= rdma.FeatSQD
	return newRigOn(t, dev, sched.Config{Slice: kib, Window: 2 * kib}, 16, 4)
}

func (r *rig) drain() {
	r.t.Helper()
	must(r.t, r.qp.Drain())
}

// A request that was cut ends before the device is drained; the state says SQD at once.
func TestDrainIsBehindWhatHasBegun(t *testing.T) {
	r := drainRig(t)
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib))
	if s := r.qp.State(); s != rdma.QPRTS {
		t.Errorf("state %s before, want %s", s, rdma.QPRTS)
	}
	r.drain()
	if s := r.qp.State(); s != rdma.QPSQD || r.far.drains != 0 {
		t.Errorf("state %s, %d drains of the device with slices to come, want %s and none", s, r.far.drains, rdma.QPSQD)
	}
	r.post(r.wr(2, rdma.OpWrite, 7, 8*kib))
	for i := 0; r.far.drains == 0 && i < 8; i++ {
		r.far.carryOut(1)
		r.poll()
	}
	if want := slices.Repeat([]uint32{1}, 8); r.far.drains != 1 || !slices.Equal(r.keys(), want) {
		t.Errorf("%d drains of the device, requests before %v, want %v", r.far.drains, r.keys(), want)
	}
	if err := r.qp.Resume(); err != nil || r.far.resumes != 1 {
		t.Errorf("%v, the device resumed %d times, want 1", err, r.far.resumes)
	}
	tells(t, r.end(), []uint64{1, 2})
}

// Where nothing has begun, the device is drained at once.
func TestDrainHoldsWhatHasNotBegun(t *testing.T) {
	r := drainRig(t)
	r.post(r.wr(1, rdma.OpWrite, 0, kib), r.wr(2, rdma.OpWrite, 0, kib), r.wr(3, rdma.OpWrite, 0, 8*kib))
	r.drain()
	if r.far.drains != 1 {
		t.Errorf("%d drains of the device, want 1", r.far.drains)
	}
}

// Who resumes while the device is not yet drained only goes on.
func TestResumeBeforeTheDeviceIsDrained(t *testing.T) {
	r := drainRig(t)
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib))
	r.drain()
	r.post(r.wr(2, rdma.OpWrite, 0, 8*kib))
	if err := r.qp.Resume(); err != nil || r.far.resumes != 0 || r.qp.State() != rdma.QPRTS {
		t.Errorf("%v, the device resumed %d times, state %s", err, r.far.resumes, r.qp.State())
	}
	if ids, _ := told(r.end()); !slices.Equal(ids, []uint64{1, 2}) || r.far.drains != 0 {
		t.Errorf("completions %v, %d drains of the device", ids, r.far.drains)
	}
}

// What the device below refuses is refused.
func TestDeviceRefusesToResume(t *testing.T) {
	r := drainRig(t)
	r.far.refusal = rdma.ErrState
	if err := r.qp.Resume(); err != rdma.ErrState {
		t.Errorf("%v, want %v", err, rdma.ErrState)
	}
}

// over is a context that has ended.
func over(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// Disconnect flushes what waits when its time is over, also where nothing under way will fail.
func TestDisconnectFlushesWhatWaits(t *testing.T) {
	r := waitingSend(t)
	must(t, r.qp.Disconnect(over(t)))
	tells(t, r.poll(), []uint64{2}, rdma.StatusWRFlushErr)
}

// A connection that the device below could not end goes on.
func TestConnectionThatDoesNotEndGoesOn(t *testing.T) {
	r := drainRig(t)
	r.post(r.wr(1, rdma.OpWrite, 0, 8*kib))
	r.far.refusal = rdma.ErrState
	if err := r.qp.Disconnect(over(t)); err != rdma.ErrState {
		t.Errorf("%v, want %v", err, rdma.ErrState)
	}
	tells(t, r.end(), []uint64{1}, rdma.StatusSuccess)
}
