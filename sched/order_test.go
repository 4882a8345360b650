package sched_test

import (
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const kib = 1 << 10

// The figure of sRDMA (wxzisk.github.io, sRDMA_fig): of two requests of two slices the second is more urgent.
func TestFigure(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: kib}, 8, 4)
	r.post(r.wr(1, rdma.OpWrite, 0, 2*kib))
	r.post(r.wr(2, rdma.OpWrite, 1, 2*kib))
	tells(t, r.end(), []uint64{2, 1})
	r.reached(1, 2, 2, 1)
}

// An urgent request is not kept out by a window full of bulk.
func TestUrgentRequestGoesAtOnce(t *testing.T) {
	r := newRig(t, sched.Config{Slice: kib, Window: 4 * kib}, 8, 4)
	r.post(r.wr(1, rdma.OpWrite, 0, 64*kib))
	if len(r.seen) != 4 {
		t.Fatalf("%d slices at the device, want the 4 of the window", len(r.seen))
	}
	r.post(r.wr(2, rdma.OpSend, 1, 64))
	if k := r.keys(); k[len(k)-1] != 2 {
		t.Errorf("at the device: %v, want 2 behind the window", k)
	}
	r.end()
}

// An invalidation waits for what was posted before it, and so does what is posted behind it.
func TestInvalidationsNeverOvertake(t *testing.T) {
	for op, size := range map[rdma.Opcode]int{rdma.OpLocalInv: 0, rdma.OpSendInv: 64} {
		r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib}, 8, 4)
		r.post(r.wr(1, rdma.OpWrite, 0, 8*kib), r.wr(2, op, 7, size), r.wr(3, rdma.OpSend, 7, 64))
		tells(t, r.end(), []uint64{1, 2, 3})
	}
}

// What is cut and what is not, and where the immediate and the flags go.
func TestWhatIsCut(t *testing.T) {
	for _, c := range []struct {
		op    rdma.Opcode
		imm   sched.Immediates
		flags rdma.SendFlags
		size  int
		want  int
	}{
		{rdma.OpWrite, "", 0, 4 * kib, 4},
		{rdma.OpWrite, "", 0, 4*kib + 1, 5},
		{rdma.OpWrite, "", rdma.Solicited | rdma.Fence, 3 * kib, 3},
		{rdma.OpRead, "", 0, 4*kib + 1, 5},
		{rdma.OpSend, "", 0, 4 * kib, 1},
		{rdma.OpSendImm, "", 0, 4 * kib, 1},
		{rdma.OpWriteImm, "", 0, 4 * kib, 1},
		{rdma.OpWriteImm, sched.LastImmediates, rdma.Solicited, 4 * kib, 4},
		{rdma.OpFetchAdd, "", 0, 8, 1},
		{rdma.OpWrite, "", rdma.Inline, 64, 1},
	} {
		r := newRig(t, sched.Config{Slice: kib, Window: 2 * kib, Immediates: c.imm}, 8, 4)
		r.post(r.wr(1, rdma.OpWrite, 0, 8*kib)) // so that the next one waits
		w := r.wr(2, c.op, 0, c.size)
		w.Flags, w.Imm = w.Flags|c.flags, 0xabcd
		r.post(w)
		if ids, st := told(r.end()); !slices.Equal(ids, []uint64{1, 2}) || st[1] != rdma.StatusSuccess {
			t.Errorf("%s: completions %v %v", c.op, ids, st)
			continue
		}
		parts := slices.DeleteFunc(slices.Clone(r.seen), func(w rdma.SendWR) bool { return w.RKey != 2 })
		sum := 0
		for i, p := range parts {
			last, first := i == len(parts)-1, i == 0
			sum += int(p.Len())
			if p.Op != c.op && (last || p.Op != rdma.OpWrite || c.op != rdma.OpWriteImm) || p.Op == rdma.OpWriteImm &&
				(!last || p.Imm != 0xabcd) {
				t.Errorf("%s: part %d is a %s with immediate %#x", c.op, i, p.Op, p.Imm)
			}
			if p.Flags&rdma.Solicited != 0 && !last || last && p.Flags&rdma.Solicited != c.flags&rdma.Solicited ||
				p.Flags&rdma.Fence != 0 && !first || first && p.Flags&rdma.Fence != c.flags&rdma.Fence {
				t.Errorf("%s: part %d of %d has flags %b", c.op, i, len(parts), p.Flags)
			}
		}
		if len(parts) != c.want || sum != c.size {
			t.Errorf("%s of %d bytes: %d parts of %d bytes, want %d", c.op, c.size, len(parts), sum, c.want)
		}
	}
}

// Soft-iWARP completes sends before earlier reads: marks, which are reads, are not mistaken for them.
func TestDeviceThatCompletesAroundReads(t *testing.T) {
	dev := newScript(true)
	dev.loose = true
	r := newRigOn(t, dev, sched.Config{Slice: kib, Window: 4 * kib}, 16, 8)
	for i := range 5 {
		r.post(r.wr(2*i+1, rdma.OpWrite, 0, 16*kib), r.wr(2*i+2, rdma.OpRead, 0, 3*kib))
	}
	r.post(r.wr(11, rdma.OpSend, 7, 64))
	var ids []uint64
	for range 2000 {
		r.far.carryOut(1)
		for _, wc := range r.poll() {
			if wc.Status != rdma.StatusSuccess || wc.Opcode == rdma.WCRead != (wc.ID%2 == 0) {
				t.Fatalf("request %d: %s, %s", wc.ID, wc.Opcode, wc.Status)
			}
			ids = append(ids, wc.ID)
		}
	}
	slices.Sort(ids)
	if want := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}; !slices.Equal(ids, want) {
		t.Errorf("completions %v, want %v", ids, want)
	}
	// Short ones go straight through, with marks between them.
	seen := map[uint64]bool{}
	for i := range 200 {
		r.post(r.wr(100+i, rdma.OpWrite, 0, 512))
		r.far.carryOut(i % 3 * 2)
		for _, wc := range r.poll() {
			if wc.ID < 100 || wc.ID > uint64(100+i) || seen[wc.ID] || wc.Status != rdma.StatusSuccess ||
				wc.Opcode != rdma.WCWrite {
				t.Fatalf("after write %d: completion of %d, %s, %s", 100+i, wc.ID, wc.Opcode, wc.Status)
			}
			seen[wc.ID] = true
		}
	}
	r.end()
}

// Where marks are writes, reads that wait for ORD are not asked for with one mark after the other.
func TestReadsBesideLocalMarks(t *testing.T) {
	for _, signaled := range []rdma.SendFlags{rdma.Signaled, 0} {
		dev := newScript(true)
		dev.loose = true
		dev.caps.Features &^= rdma.FeatEmptyRead
		r := newRigOn(t, dev, sched.Config{Slice: kib, Window: 64 * kib}, 16, 4)
		marks, failed := 0, false
		seen := r.far.onPost
		r.far.onPost = func(wr *rdma.SendWR) {
			seen(wr)
			if wr.RKey == 0 {
				marks++
			}
		}
		for i := range 12 {
			w := r.wr(i+1, rdma.OpRead, 0, []int{64, 3 * kib}[i%2])
			if i < 11 {
				w.Flags = signaled
			}
			r.post(w)
		}
		ids := map[uint64]bool{}
		note := func(wcs []rdma.WC) {
			for _, wc := range wcs {
				failed = failed || wc.Status != rdma.StatusSuccess
				ids[wc.ID] = true
			}
		}
		for range 500 {
			note(r.poll())
		}
		if n := len(r.seen); n != 4 {
			t.Errorf("flags %d: %d reads at the device, want the 4 of ORD", signaled, n)
		}
		r.post(r.wr(20, rdma.OpSend, 7, 8)) // completes at once, and makes no room
		for range 500 {
			note(r.poll())
		}
		if marks > 4 {
			t.Errorf("flags %d: %d marks beside reads that were not answered", signaled, marks)
		}
		note(r.end())
		want := 13
		if signaled == 0 {
			want = 2
		}
		if len(ids) != want || failed {
			t.Errorf("flags %d: %d requests ended, want %d; one failed: %v", signaled, len(ids), want, failed)
		}
	}
}

// lowShare is what class 0, which always has work, gets of the device beside load percent of class 7 on one queue pair;
// the first half of the turns is not counted.
func lowShare(t *testing.T, cfg sched.Config, load int) float64 {
	const (
		turns, carried = 400, 20 // requests that the device carries out a turn
		lows, highs    = 2 * carried, 3 * carried
	)
	cfg.Slice, cfg.Window = kib, carried*kib
	r := newRig(t, cfg, lows+highs, 4)
	low, high := r.wr(1, rdma.OpWrite, 0, kib), r.wr(2, rdma.OpWrite, 7, kib)
	out, done, owed := [3]int{}, 0, 0
	for turn := range turns {
		for owed += load * carried; owed >= 100 && out[2] < highs; owed -= 100 {
			r.post(high)
			out[2]++
		}
		owed = min(owed, 100*carried) // who cannot post in time does not catch up without end
		for ; out[1] < lows; out[1]++ {
			r.post(low)
		}
		r.far.carryOut(carried)
		for _, wc := range r.poll() {
			out[wc.ID]--
			if wc.ID == 1 && turn >= turns/2 {
				done++
			}
		}
	}
	return float64(done) / (carried * turns / 2)
}

// A saturating high class leaves a low one nothing with strict priority, and a floor with the others.
func TestStarvationIsBoundedByThePolicy(t *testing.T) {
	weights := [sched.Priorities]int{1, 1, 1, 1, 1, 1, 1, 4} // a fifth of the device for class 0
	for name, c := range map[string]struct {
		cfg         sched.Config
		least, most float64 // of the low class's share beside 120 %
	}{
		"strict": {sched.Config{}, 0, 0},
		"drr":    {sched.Config{Policy: sched.DRR, Weights: weights}, 0.15, 0.25},
		"aging":  {sched.Config{Policy: sched.Aging, AgeEvery: time.Microsecond}, 0.01, 1},
		"edf": {sched.Config{Policy: sched.EDF, Deadlines: [sched.Priorities]time.Duration{7: time.Microsecond,
			0: 8 * time.Microsecond, 1: 1000, 2: 1000, 3: 1000, 4: 1000, 5: 1000, 6: 1000}}, 0.01, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for _, load := range []int{0, 40, 80} {
				if got, free := lowShare(t, c.cfg, load), 1-float64(load)/100; got < free-0.05 || got > 1 {
					t.Errorf("%.3f of the device beside %d %%, want %.2f", got, load, free)
				}
			}
			if got := lowShare(t, c.cfg, 120); got < c.least || got > c.most {
				t.Errorf("%.3f of the device beside 120 %%, want %v to %v", got, c.least, c.most)
			}
		})
	}
}
