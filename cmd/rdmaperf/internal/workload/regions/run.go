package regions

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
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
	// write posts one; its slot comes back. ok is false when it has to wait.
	write(region int, off uint64, size int, slot uint32) (ok bool, err error)
	// poll returns how many writes have ended.
	poll() (int, error)
	// end ends the regions and says how long each took; then it closes all.
	end() (each time.Duration, err error)
	// fill and check write and compare what lies in a region.
	check(region int, off uint64, size int) error
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

func run(ctx context.Context, r *engine.OwnRun) (all []reports.Result, err error) {
	var o options
	if err := r.Point.Options.Unpack(&o); err != nil {
		return nil, err
	}
	now := func() int64 { return time.Now().UnixNano() }
	clock := r.Stack.Caps().Clock
	var t target
	var cost made
	var own *rdma.Clock
	switch s := r.Stack.(type) {
	case *stack.Stack:
		t, cost, own, err = openNamed(ctx, r, s, &o)
	default:
		t, cost, own, err = openNative(ctx, r, &o)
	}
	if err != nil {
		return nil, err
	}
	ended := false
	defer func() {
		if !ended {
			_, e := t.end()
			err = errors.Join(err, e)
		}
	}()
	name := "CLOCK_MONOTONIC"
	if clock != nil {
		if own == nil {
			return nil, errors.New("a device with a clock of its own has lost it")
		}
		now, name = own.Now, "the model's"
	}
	w := &window{t: t, o: &o, now: now, ctx: ctx}
	if r.Point.Op == opMake {
		if err := w.touch(); err != nil {
			return nil, err
		}
		ended = true
		each, err := t.end()
		res := r.Result()
		res.SizeBytes, res.Verified, res.Polling = int64(o.X), true, ""
		res.Operations, res.DurationNs = int64(o.Regions), int64(o.Regions)*int64(cost.make)
		res.Parameters["clock"], res.Parameters["regions"], res.Parameters["total_bytes"] = "CLOCK_MONOTONIC", o.Regions, o.Total
		res.Detail = &curves.Point{X: o.X, Values: cost.values(map[string]float64{"end_ns": float64(each)})}
		return []reports.Result{res}, err
	}
	for i, size := range o.Sizes {
		w.rng = rand.New(rand.NewPCG(r.Plan.Seed, uint64(i)))
		w.size = size
		n := writes
		if r.Plan.Iterations > 0 {
			n = int(r.Plan.Iterations)
		}
		if _, err := w.stream(n); err != nil { // fills the caches
			return nil, err
		}
		took, err := w.stream(n)
		if err != nil {
			return nil, err
		}
		var samples []int64
		for range min(pings, n) {
			one, err := w.stream(1)
			if err != nil {
				return nil, err
			}
			samples = append(samples, one)
		}
		if err := w.verify(); err != nil {
			return nil, err
		}
		slices.Sort(samples)
		res := r.Result()
		res.SizeBytes, res.Depth, res.Verified, res.Polling = int64(size), depth, true, ""
		res.DurationNs, res.Operations = took, int64(n)
		res.Parameters["clock"], res.Parameters["regions"], res.Parameters["total_bytes"] = name, o.Regions, o.Total
		v := cost.values(map[string]float64{"rate": float64(n) * 1e9 / float64(max(took, 1)),
			"latency_p50_ns": float64(samples[(len(samples)-1)/2]), "latency_p99_ns": float64(samples[(len(samples)*99+99)/100-1])})
		res.Detail = &curves.Point{X: o.X, Values: v}
		all = append(all, res)
		r.Progress(int64(i+1), int64(len(o.Sizes)))
	}
	ended = true
	each, err := t.end()
	for i := range all {
		curves.Of(&all[i]).Values["end_ns"] = float64(each)
	}
	return all, err
}

// window writes to random places.
type window struct {
	t    target
	o    *options
	rng  *rand.Rand
	size int
	now  func() int64
	ctx  context.Context
	last [2]uint64 // region and offset of the newest write
}

// stream does n writes and returns how long they took.
func (w *window) stream(n int) (ns int64, err error) {
	begin := w.now()
	each := uint64(w.o.Total / int64(w.o.Regions))
	posted, done := 0, 0
	region, off, drawn := 0, uint64(0), false
	for idle := 0; done < n; {
		for posted < n && posted-done < depth {
			if !drawn {
				region, off, drawn = w.rng.IntN(w.o.Regions), w.rng.Uint64N(each-uint64(w.size)+1)&^63, true
			}
			ok, err := w.t.write(region, off, w.size, uint32(posted))
			if err != nil {
				return 0, err
			}
			if !ok {
				break
			}
			w.last = [2]uint64{uint64(region), off}
			posted++
			drawn = false
		}
		k, err := w.t.poll()
		if err != nil {
			return 0, err
		}
		if done += k; k > 0 {
			idle = 0
		} else if idle++; idle%(1<<16) == 0 && w.ctx.Err() != nil {
			return 0, w.ctx.Err()
		}
	}
	return w.now() - begin, nil
}

// touch writes to the end of every region, and compares what lies there.
func (w *window) touch() error {
	w.size = w.o.Sizes[0]
	off := uint64(w.o.Total/int64(w.o.Regions)) - uint64(w.size)
	for region := range w.o.Regions {
		if ok, err := w.t.write(region, off, w.size, 0); err != nil || !ok {
			if err == nil {
				err = rdma.ErrQueueFull // nothing was under way
			}
			return err
		}
		for idle := 0; ; idle++ {
			k, err := w.t.poll()
			if err != nil {
				return err
			}
			if k > 0 {
				break
			}
			if idle%(1<<16) == 1<<16-1 && w.ctx.Err() != nil {
				return w.ctx.Err()
			}
		}
		if err := w.t.check(region, off, w.size); err != nil {
			return err
		}
	}
	return nil
}

// verify compares what the newest write left with what was sent.
func (w *window) verify() error { return w.t.check(int(w.last[0]), w.last[1], w.size) }

// pattern is what all writes carry.
func pattern(b []byte) {
	for i := range b {
		b[i] = byte(i*7 + 1)
	}
}

// corrupt is data at the far end that is not what was sent.
func corrupt(region int, off uint64) error {
	return &reports.ExitError{Code: reports.ExitCorruption, Operation: "regions", Err: fmt.Errorf("region %d does not hold at %d what was written there", region, off)}
}
