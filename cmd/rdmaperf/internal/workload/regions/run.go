// Package regions is the workload of many regions: how writes to random places of them
// fare as their number and their size grow, with a registration for each or through
// named regions of LITE, and what it costs to make one by its size.
//
// Both ends live in this process. One thread posts, and polls both ends: a thread of the far
// one's would be woken by what arrives, and a write would cost that. The regions of a point are
// made before its window, at the far end; that is timed by the host's clock, whatever
// the device's.
package regions

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// depth is how many writes are under way while rates are measured: enough to fill a
	// pipeline of some 0.2 µs over a round trip of 2 µs. Arbitrary.
	depth = 16
	// writes of a window, and as many before it: they touch what caches of some thousand
	// entries hold several times over. Arbitrary.
	writes = 8000
	// pings are those of latency.
	pings = 2000
)

// target is regions at the far end that can be written to.
type target interface {
	pairs.Target
	// end ends the regions and says how long each took; then it closes all.
	end() (each time.Duration, err error)
}

// made is what making regions took, each.
type made struct{ make, mapped time.Duration }

// values adds it to those of a point.
func (m *made) values(v map[string]float64) map[string]float64 {
	v["make_ns"] = float64(m.make)
	if m.mapped > 0 {
		v["map_ns"] = float64(m.mapped)
	}
	return v
}

// Client measures one point.
func (*Workload) Client(ctx context.Context, r *engine.Run) (err error) {
	o, err := engine.ReadOptions(r.Point, (*options).check)
	if err != nil {
		return err
	}
	now := func() int64 { return time.Now().UnixNano() }
	clock := r.Stack.Caps().Clock
	var t target
	var cost made
	var own *rdma.Clock
	switch r.Stack.(type) {
	case *stack.Stack:
		t, cost, own, err = openNamed(ctx, r, &o)
	default:
		t, cost, own, err = openNative(ctx, r, &o)
	}
	if err != nil {
		return err
	}
	var all []reports.Result
	defer func() {
		each, e := t.end()
		for i := range all {
			curves.Of(&all[i]).Values["end_ns"] = float64(each)
		}
		r.Add(all...)
		err = errors.Join(err, e)
	}()
	name := "CLOCK_MONOTONIC"
	if clock != nil {
		if own == nil {
			return errors.New("a device with a clock of its own has lost it")
		}
		now, name = own.Now, "the model's"
	}
	if r.Point.Op == opMake {
		res, err := touch(ctx, r, &o, t, cost)
		if err != nil {
			return err
		}
		all = []reports.Result{res}
		return nil
	}
	if all, err = measure(ctx, r, &o, t, cost, now); err == nil {
		for i := range all {
			all[i].Parameters["clock"] = name
		}
	}
	return err
}

// compareEach is of how many writes one is compared by default. Arbitrary.
const compareEach = 256

// measure writes to random places, with each size.
func measure(ctx context.Context, r *engine.Run, o *options, t target, cost made,
	now func() int64) (all []reports.Result, err error) {
	w := &pairs.Writes{Target: t, Proof: drive.LocalProof(r, compareEach), Slots: depth, Now: now}
	each := uint64(o.Total / int64(o.Regions))
	for i, size := range o.Sizes {
		rng := rand.New(rand.NewPCG(r.Plan.Seed, uint64(i)))
		w.Size = size
		w.Next = func(int) pairs.Place {
			return pairs.Place{Region: rng.IntN(o.Regions), Off: rng.Uint64N(each-uint64(size)+1) &^ 63}
		}
		n := writes
		if r.Plan.Iterations > 0 {
			n = int(r.Plan.Iterations)
		}
		if _, err := w.Do(ctx, n); err != nil { // fills the caches
			return nil, err
		}
		w.Take(0)
		took, err := w.Do(ctx, n)
		if err != nil {
			return nil, err
		}
		compared := w.Take(int64(n))
		var samples []int64
		for range min(pings, n) {
			one, err := w.Do(ctx, 1)
			if err != nil {
				return nil, err
			}
			samples = append(samples, one)
		}
		slices.Sort(samples)
		res := r.Result()
		res.SizeBytes, res.Depth, res.Polling = int64(size), depth, ""
		res.Verification, res.Verified = compared, r.Plan.Verify
		res.DurationNs, res.Operations = took, int64(n)
		res.Parameters["regions"], res.Parameters["total_bytes"] = o.Regions, o.Total
		v := cost.values(map[string]float64{"rate": float64(n) * 1e9 / float64(max(took, 1)),
			"latency_p50_ns": float64(samples[(len(samples)-1)/2]),
			"latency_p99_ns": float64(samples[(len(samples)*99+99)/100-1])})
		res.Detail = &curves.Point{X: o.X, Values: v}
		all = append(all, res)
		r.Progress(int64(i+1), int64(len(o.Sizes)))
	}
	return all, nil
}

// touch writes to the end of every region, and compares what lies there: one write each,
// so that all of them are.
func touch(ctx context.Context, r *engine.Run, o *options, t target, cost made) (reports.Result, error) {
	size, region := o.Sizes[0], 0
	off := uint64(o.Total/int64(o.Regions)) - uint64(size)
	w := &pairs.Writes{Target: t, Proof: drive.LocalProof(r, 1), Slots: depth, Size: size, Now: func() int64 {
		return time.Now().UnixNano()
	},
		Next: func(int) pairs.Place { region++; return pairs.Place{Region: region - 1, Off: off} }}
	res := r.Result()
	if _, err := w.Do(ctx, o.Regions); err != nil {
		return res, err
	}
	res.SizeBytes, res.Polling = int64(o.X), ""
	res.Verification, res.Verified = w.Take(int64(o.Regions)), r.Plan.Verify
	res.Operations, res.DurationNs = int64(o.Regions), int64(o.Regions)*int64(cost.make)
	res.Parameters["clock"], res.Parameters["regions"], res.Parameters["total_bytes"] = "CLOCK_MONOTONIC", o.Regions,
		o.Total
	res.Detail = &curves.Point{X: o.X, Values: cost.values(map[string]float64{})}
	return res, nil
}
