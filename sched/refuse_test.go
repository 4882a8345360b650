package sched_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What is as short or as long as the documentation says is taken, and one beyond is not, nor what does not exist.
func TestConfigIsChecked(t *testing.T) {
	weights := func(w int) [sched.Priorities]int {
		return [sched.Priorities]int(slices.Repeat([]int{w}, sched.Priorities))
	}
	deadlines := func(d time.Duration) [sched.Priorities]time.Duration {
		return [sched.Priorities]time.Duration(slices.Repeat([]time.Duration{d}, sched.Priorities))
	}
	for _, c := range []sched.Config{
		{Slice: kib}, {Slice: 1 << 30}, {Window: kib}, {Window: 1 << 30}, {Slice: 4 * kib, Window: 4 * kib},
		{Sends: sched.CutSends, Room: 8 * kib}, {Sends: sched.CutSends, Room: 64 << 20},
		{AgeEvery: time.Microsecond}, {AgeEvery: time.Hour}, {Weights: weights(1)}, {Weights: weights(1 << 16)},
		{Deadlines: deadlines(time.Microsecond)}, {Deadlines: deadlines(time.Hour)},
	} {
		if d, err := sched.Wrap(newNull(), c); err != nil {
			t.Errorf("%+v: %v", c, err)
		} else if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []sched.Config{
		{Policy: "lottery"}, {Sends: "half"}, {Immediates: "first"}, {Adaptive: true, Steady: true},
		{Scope: "rack"}, {Policy: sched.FIFO, Scope: sched.ScopeDevice}, {Weights: [sched.Priorities]int{1}},
		{Deadlines: [sched.Priorities]time.Duration{time.Second}},
		{Slice: kib - 1}, {Slice: 1<<30 + 1}, {Window: kib - 1}, {Window: 1<<30 + 1},
		{Slice: 4 * kib, Window: 4*kib - 1},
		{Sends: sched.CutSends, Room: 8*kib - 1}, {Sends: sched.CutSends, Room: 64<<20 + 1},
		{AgeEvery: time.Microsecond - 1}, {AgeEvery: time.Hour + 1}, {Weights: weights(-1)},
		{Weights: weights(1<<16 + 1)},
		{Deadlines: deadlines(time.Microsecond - 1)}, {Deadlines: deadlines(time.Hour + 1)},
	} {
		if d, err := sched.Wrap(newNull(), c); !errors.Is(err, rdma.ErrInvalid) || d != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestNameTellsTheParameters(t *testing.T) {
	for _, c := range []struct {
		cfg  sched.Config
		want string
	}{
		{sched.Config{}, "sched(strict,slice=auto,window=auto)+null"},
		{sched.Config{Slice: 16 * kib, Window: 1 << 20, Adaptive: true, Sends: sched.RefuseSends,
			Immediates: sched.LastImmediates},
			"sched(strict,slice=16KiB,window=1MiB,sends=refuse,imm=last,adaptive)+null"},
		{sched.Config{Policy: sched.FIFO}, "sched(fifo)+null"},
		{sched.Config{Steady: true}, "sched(strict,slice=auto,window=auto,steady)+null"},
		{sched.Config{Adaptive: true}, "sched(strict,slice=auto,window=auto)+null"},
		{sched.Config{Policy: sched.Aging}, "sched(aging,slice=auto,window=auto)+null"},
		{sched.Config{Policy: sched.Aging, AgeEvery: time.Second}, "sched(aging,slice=auto,window=auto,every=1s)+null"},
		{sched.Config{Policy: sched.DRR}, "sched(drr,slice=auto,window=auto)+null"},
		{sched.Config{Policy: sched.DRR, Weights: [sched.Priorities]int{3, 4, 4, 4, 4, 4, 4, 4}},
			"sched(drr,slice=auto,window=auto,weights=3:4:4:4:4:4:4:4)+null"},
		{sched.Config{Policy: sched.EDF}, "sched(edf,slice=auto,window=auto)+null"},
		{sched.Config{Policy: sched.EDF, Deadlines: [sched.Priorities]time.Duration{8e6, 7e6, 6e6, 5e6, 4e6, 3e6, 2e6,
			1e6}},
			"sched(edf,slice=auto,window=auto,deadlines=8ms:7ms:6ms:5ms:4ms:3ms:2ms:1ms)+null"},
		{sched.Config{Sends: sched.CutSends}, "sched(strict,slice=auto,window=auto,sends=slice)+null"},
		{sched.Config{Sends: sched.CutSends, Room: 8 * kib},
			"sched(strict,slice=auto,window=auto,sends=slice,room=8KiB)+null"},
		{sched.Config{Slice: kib + 1}, "sched(strict,slice=1025,window=auto)+null"},
		{sched.Config{Scope: sched.ScopePeer}, "sched(strict,slice=auto,window=auto,scope=peer)+null"},
	} {
		if got := wrapped(t, newNull(), c.cfg).Name(); got != c.want {
			t.Errorf("name %q, want %q", got, c.want)
		}
	}
}

// Caps are those of the device below, less the tier's own needs.
func TestCapsAreOfTheDeviceBelow(t *testing.T) {
	dev := newNull()
	c := wrapped(t, dev, sched.Config{}).Caps()
	want := dev.caps
	want.MaxQPWR, want.MaxCQE, want.Priorities, want.OwnReads = c.MaxQPWR, c.MaxCQE, sched.Priorities, true
	if c != want || c.MaxQPWR >= dev.caps.MaxQPWR || c.MaxQPWR < dev.caps.MaxQPWR/2 || c.MaxCQE > dev.caps.MaxCQE/2 ||
		c.MaxCQE < dev.caps.MaxCQE/4 {
		t.Errorf("caps %+v", c)
	}
	for _, limit := range []func(c *rdma.Caps){
		func(c *rdma.Caps) { c.MaxQPWR = 64 },
		func(c *rdma.Caps) { c.MaxCQE = 2048 },
	} {
		dev := newNull()
		limit(&dev.caps)
		if _, err := sched.Wrap(dev, sched.Config{}); !errors.Is(err, rdma.ErrNotSupported) {
			t.Errorf("a device with queues of %d and %d: %v", dev.caps.MaxQPWR, dev.caps.MaxCQE, err)
		}
	}
}

// A completion queue has room below for what the tier adds, and its depth is bounded.
func TestCompletionQueueBelowIsDeeper(t *testing.T) {
	dev := &depths{nullDevice: newNull()}
	tier := wrapped(t, dev, sched.Config{})
	most := tier.Caps().MaxCQE
	for depth, ok := range map[int]bool{0: false, 1: true, most: true, most + 1: false} {
		dev.last = 0
		cq, err := tier.NewCQ(depth)
		if (err == nil) != ok || !ok && !errors.Is(err, rdma.ErrInvalid) {
			t.Errorf("depth %d: %v", depth, err)
		}
		if ok && (dev.last < 2*depth+64 || dev.last > dev.caps.MaxCQE) {
			t.Errorf("depth %d: %d below", depth, dev.last)
		}
		if cq != nil {
			must(t, cq.Close())
		}
	}
}

// depths notes how deep the last completion queue is.
type depths struct {
	*nullDevice
	last int
}

func (d *depths) NewCQ(depth int) (rdma.CQ, error) {
	d.last = depth
	return d.nullDevice.NewCQ(depth)
}

func TestPostsAreRefused(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib, Sends: sched.RefuseSends}, 8, 4)
	refused := func() {
		t.Helper()
		r.takes(0, rdma.ErrInvalid, r.wr(9, rdma.OpWrite, 8, 64))
		r.takes(0, rdma.ErrInvalid, r.wr(9, rdma.OpSend, 0, 2*kib))
	}
	refused()
	r.post(r.wr(1, rdma.OpWrite, 0, 64*kib))
	refused()
	// Only the tier is there to refuse what waits.
	for name, change := range map[string]func(w *rdma.SendWR){
		"operation":    func(w *rdma.SendWR) { w.Op = 99 },
		"flags":        func(w *rdma.SendWR) { w.Flags = 0x80 },
		"elements":     func(w *rdma.SendWR) { w.NumSGE = rdma.MaxSGE + 1 },
		"atomic size":  func(w *rdma.SendWR) { w.Op = rdma.OpFetchAdd },
		"inline read":  func(w *rdma.SendWR) { w.Op = rdma.OpRead; w.Flags |= rdma.Inline },
		"long inline":  func(w *rdma.SendWR) { w.Flags |= rdma.Inline; w.SGE[0].Len = 65 },
		"inv with sge": func(w *rdma.SendWR) { w.Op = rdma.OpLocalInv },
	} {
		w := r.wr(9, rdma.OpWrite, 0, 64)
		change(&w)
		if n, err := r.qp.PostSend([]rdma.SendWR{w}); n != 0 || err != rdma.ErrInvalid {
			t.Errorf("%s: %d, %v, want %v", name, n, err, rdma.ErrInvalid)
		}
	}
	// The first of a list stands, the second is refused, the third is not looked at.
	r.takes(1, rdma.ErrInvalid, r.wr(2, rdma.OpWrite, 0, 64), r.wr(3, rdma.OpWrite, 8, 64), r.wr(4, rdma.OpWrite, 0, 64))
	tells(t, r.end(), []uint64{1, 2})
}

// A request has one place of the queue until its completion is polled, whatever became of its slices.
func TestQueueFull(t *testing.T) {
	const depth = 4
	r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib}, depth, 4)
	for round := range 3 {
		for i := range depth {
			r.post(r.wr(i, rdma.OpWrite, i, 16*kib))
		}
		r.takes(0, rdma.ErrQueueFull, r.wr(9, rdma.OpWrite, 7, 8))
		var all []rdma.WC
		for len(all) == 0 {
			r.far.carryOut(1)
			all = r.poll()
		}
		r.post(r.wr(9, rdma.OpWrite, 7, 8))
		r.takes(0, rdma.ErrQueueFull, r.wr(10, rdma.OpWrite, 7, 8))
		if all = append(all, r.end()...); len(all) != depth+1 {
			t.Fatalf("round %d: %d completions, want %d", round, len(all), depth+1)
		}
	}
	// Unsignalled requests keep their places until a later completion is polled.
	for _, w := range r.unsignaled(rdma.OpWrite, depth-1, 8) {
		r.post(w)
	}
	r.end()
	r.post(r.wr(2, rdma.OpWrite, 0, 8))
	r.takes(0, rdma.ErrQueueFull, r.wr(3, rdma.OpWrite, 0, 8))
	if len(r.end()) != 1 {
		t.Error("one completion wanted")
	}
	r.post(r.wr(3, rdma.OpWrite, 0, 8), r.wr(4, rdma.OpWrite, 0, 8), r.wr(5, rdma.OpWrite, 0, 8),
		r.wr(6, rdma.OpWrite, 0, 8))
	r.end()
}

// A slice in the middle fails: its request has the error, the rest is flushed once, in order.
func TestMiddleSliceFails(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib}, 8, 4)
	r.far.failAfter, r.far.status = 5, rdma.StatusRemAccessErr
	unsignaled := r.wr(3, rdma.OpWrite, 0, 2*kib)
	unsignaled.Flags = 0
	r.post(r.wr(1, rdma.OpWrite, 0, 2*kib), r.wr(2, rdma.OpWrite, 0, 8*kib), unsignaled, r.wr(4, rdma.OpSend, 0, 0))
	const flush = rdma.StatusWRFlushErr
	tells(t, r.end(), []uint64{1, 2, 3, 4}, 0, rdma.StatusRemAccessErr, flush, flush)
	if s := r.qp.State(); s != rdma.QPErr {
		t.Errorf("state %s", s)
	}
	// What is posted now is flushed as well.
	r.post(r.wr(5, rdma.OpWrite, 7, 64*kib))
	tells(t, r.end(), []uint64{5}, flush)
}

// Fail, Close and Disconnect flush what waits.
func TestEndsWithQueuedRequests(t *testing.T) {
	for name, end := range map[string]func(q rdma.QP) error{
		"fail":                    rdma.QP.Fail,
		"close":                   rdma.QP.Close,
		"disconnect without time": func(q rdma.QP) error { return q.Disconnect(over(t)) },
	} {
		r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib}, 8, 4)
		for i := range 6 {
			r.post(r.wr(i+1, rdma.OpWrite, i%3, 4*kib))
		}
		if err := end(r.qp); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		all := r.end()
		slices.SortFunc(all, func(a, b rdma.WC) int { return cmp.Compare(a.ID, b.ID) })
		tells(t, all, []uint64{1, 2, 3, 4, 5, 6}, rdma.StatusWRFlushErr)
		if err := errors.Join(r.qp.Close(), r.qp.Close()); err != nil {
			t.Errorf("%s: close: %v", name, err)
		}
		r.takes(0, rdma.ErrClosed, r.wr(7, rdma.OpWrite, 0, 8))
	}
}

// No more reads are at the device than ORD: one more would block its queue, and an urgent request behind it.
func TestReadsStayWithinORD(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 64 * kib}, 16, 2)
	for i := range 4 {
		r.post(r.wr(i+1, rdma.OpRead, 0, 4*kib))
	}
	if len(r.seen) != 2 {
		t.Errorf("%d reads at the device, want the 2 of ORD", len(r.seen))
	}
	r.post(r.wr(9, rdma.OpSend, 1, 8))
	if k := r.keys(); k[len(k)-1] != 9 {
		t.Errorf("at the device %v, want the urgent send last", k)
	}
	if got := r.end(); len(got) != 5 {
		t.Errorf("%d completions, want 5", len(got))
	}
}

func TestForeignObjectsAreRefused(t *testing.T) {
	d := wrapped(t, newNull(), sched.Config{})
	other := wrapped(t, newNull(), sched.Config{})
	cq, _ := other.NewCQ(4)
	own, _ := d.NewCQ(4)
	for _, cfg := range []rdma.QPConfig{{}, {SendCQ: cq, RecvCQ: cq}} {
		if q, err := d.NewQP(cfg); !errors.Is(err, rdma.ErrInvalid) || q != nil {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	if _, err := d.NewCQ(0); !errors.Is(err, rdma.ErrInvalid) || !strings.Contains(err.Error(), "create cq") {
		t.Errorf("cq of 0: %v", err)
	}
	if err := own.Arm(false); err != rdma.ErrNotSupported {
		t.Errorf("arm without events below: %v", err)
	}
	if err := own.Wait(context.Background()); err != rdma.ErrNotSupported {
		t.Errorf("wait without events below: %v", err)
	}
}
