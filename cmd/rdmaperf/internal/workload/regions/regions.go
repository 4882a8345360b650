// Package regions is the workload of many regions: how writes to random places fare as their number and size grow, and
// what making one costs. Each has a registration, or is a named region of LITE. Both ends live in this process; one
// thread posts and polls both, as a write would cost another's wake-up. Making regions is timed by the host's clock.
package regions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const Name = "regions"

// Curves, as Result.Op names them.
const (
	opCount = "count" // x is the number of regions
	opTotal = "total" // x is the bytes of one region
	opMake  = "make"  // x likewise, of several that are made, mapped and ended
)

var set = curves.Results(reports.Workload{
	Name: Name, Title: "Regions",
	Intro: "Writes to random places of many regions, or of one large region. A device alone has a registration for " +
		"each region; LITE has one for all of them, and handles. A NIC caches few keys and translations: what it " +
		"loses when they do not fit is the left end against the right. A stack of a model is timed by the model's " +
		"clock. Latency with one write under way, rate with 16; making a region is by the host's clock.",
	Dims: []reports.DimDef{{Name: "regions", Help: "regions of one window"},
		{Name: "region_bytes", Unit: "B", Help: "a region"}},
	Figures: []reports.FigureDef{
		{Name: "rate", Quantity: reports.QuantityRate, Better: reports.More, Help: "Writes a second"},
		{Name: "latency_p50_ns", Quantity: reports.QuantityTime, Help: "Latency, median"},
		{Name: "latency_p99_ns", Quantity: reports.QuantityTime, Help: "p99"},
		{Name: "make_ns", Quantity: reports.QuantityTime, Help: "Making one region"},
		{Name: "map_ns", Quantity: reports.QuantityTime, Help: "Mapping one region by its name"},
		{Name: "end_ns", Quantity: reports.QuantityTime, Help: "Ending one region"},
	},
}, "one connection and one thread, both ends in one process", map[string]reports.DimDef{opCount: {Name: "regions"},
	opTotal: {Name: "region_bytes", Unit: "B"}, opMake: {Name: "region_bytes", Unit: "B"}})

type options struct {
	Regions int   // of Total/Regions bytes each
	Total   int64 // bytes
	Sizes   []int // of writes
	X       float64
}

const (
	maxRegions = 1 << 16
	maxTotal   = 1 << 30
	// madeBytes and mostMade bound the regions that are made at one point. Arbitrary: enough for a mean.
	madeBytes = 64 << 20
	mostMade  = 64
)

func (o *options) check(int) error {
	switch {
	case o.Regions < 1 || o.Regions > maxRegions:
		return fmt.Errorf("%d regions: want 1 to %d", o.Regions, maxRegions)
	case o.Total < int64(o.Regions) || o.Total > maxTotal:
		return fmt.Errorf("regions of %d bytes in all: want at most %d", o.Total, maxTotal)
	case len(o.Sizes) == 0 || slices.Min(o.Sizes) < 1 || int64(slices.Max(o.Sizes)) > o.Total/int64(o.Regions):
		return fmt.Errorf("writes of %v bytes to regions of %d", o.Sizes, o.Total/int64(o.Regions))
	}
	return nil
}

type Workload struct {
	engine.ClientOnly
	counts, totals, made string
	size                 string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:    Name,
		Results: set,
		Summary: "writes to many memory regions, or at random in a large one",
		Examples: "rdmaperf run --transport iwarp,lite+iwarp --workload regions --regions 1,100,10000\n" +
			"rdmaperf run --transport 'model(cx3)+mem,lite+model(cx3)+mem' --workload regions",
		Group:      "Workload regions",
		OwnThreads: true,
		Over:       pairs.NoPair,
		Sizes:      []int{64, 1024},
	}
}

func (f *Workload) Flags(s *pflag.FlagSet) {
	values.ListVar(s, &f.counts, "regions", "1,16,64,128,256,1024,4096,16384,65536",
		"regions: how many, a comma list or FROM:TO:STEP")
	s.StringVar(&f.size, "region-size", "4K", "regions: bytes of each of several")
	values.ListVar(s, &f.totals, "total", "1,2,4,8,16,64,256,1024",
		"regions: MiB of one region, a comma list or FROM:TO:STEP")
	values.ListVar(s, &f.made, "make", "4K,64K,1M,4M,16M,64M,256M",
		"regions: bytes of a region, a comma list; the cost of making, mapping and ending one")
}

func (f *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if s := c.AnyOf("op", "qp", "qp-sweep", "threads", "polling", "duration"); s != "" && c.Alone() {
		return nil, values.Wrong(s, "the workload regions writes by one thread on one connection; see --regions, --total "+
			"and --make")
	}
	counts, err := values.Counts("regions", f.counts)
	if err != nil {
		return nil, err
	}
	totals, err := values.Counts("total", f.totals)
	if err != nil {
		return nil, err
	}
	each, err := reports.ParseSize(f.size)
	if err != nil || each < 1 {
		return nil, values.Wrong("region-size", "%q: want bytes, such as 4K", f.size)
	}
	sizes := c.SizesOf("", f.Meta().Sizes)
	lists := []struct {
		flag, op string
		points   []options
	}{{flag: "regions", op: opCount}, {flag: "total", op: opTotal}, {flag: "make", op: opMake}}
	for _, n := range counts {
		lists[0].points = append(lists[0].points, options{n, int64(n) * int64(each), sizes, float64(n)})
	}
	for _, n := range totals {
		lists[1].points = append(lists[1].points, options{1, int64(n) << 20, sizes, float64(n) * (1 << 20)})
	}
	for word := range strings.SplitSeq(f.made, ",") {
		n, err := values.Bytes(word)
		if err != nil {
			return nil, values.Wrong("make", "%w", err)
		}
		count := min(max(madeBytes/max(n, 1), 1), mostMade)
		// One write of each region says that it is there.
		lists[2].points = append(lists[2].points, options{count, int64(count) * int64(n),
			[]int{min(sizes[0], max(n, 1))}, float64(n)})
	}
	named := c.AnyOf("regions", "total", "make") != "" // who names one curve wants that one
	for _, curve := range lists {
		if named && !c.Changed(curve.flag) {
			continue
		}
		for _, o := range curve.points {
			if err := o.check(0); err != nil {
				return nil, values.Wrong(curve.flag, "%v", err)
			}
			points = append(points, engine.Point{Workload: Name, Alone: true, Op: curve.op, Size: sizes[0],
				Words:   fmt.Sprintf("regions: %d of %s", o.Regions, reports.SizeLabel(o.Total/int64(o.Regions))),
				Options: engine.PackOptions(o)})
		}
	}
	return points, nil
}

const (
	// depth is of rates: enough to fill a pipeline of some 0.2 µs over a round trip of 2 µs. Arbitrary.
	depth = 16
	// writes of a window: they touch caches of some thousand entries several times over. Arbitrary.
	writes = 8000
	pings  = 2000
)

// made is what making regions took, each.
type made struct{ make, mapped time.Duration }

func (m *made) values(v map[string]float64) map[string]float64 {
	v["make_ns"] = float64(m.make)
	if m.mapped > 0 {
		v["map_ns"] = float64(m.mapped)
	}
	return v
}

func (*Workload) Client(ctx context.Context, r *engine.Run) (err error) {
	o, err := engine.ReadOptions(r.Point, (*options).check)
	if err != nil {
		return err
	}
	open := openNative
	if _, ok := r.Stack.(*stack.Stack); ok {
		open = openNamed
	}
	t, err := open(ctx, r, &o)
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
	if r.Stack.Caps().Clock != nil && t.clock == nil {
		return errors.New("a device with a clock of its own has lost it")
	}
	now, name := pairs.Clock(t.clock)
	if r.Point.Op == opMake {
		res, err := touch(ctx, r, &o, t.Target, t.cost)
		if err != nil {
			return err
		}
		all = []reports.Result{res}
		return nil
	}
	if all, err = measure(ctx, r, &o, t.Target, t.cost, now); err == nil {
		for i := range all {
			all[i].Parameters["clock"] = name
		}
	}
	return err
}

type opened struct {
	pairs.Target
	end   func() (each time.Duration, err error) // of the regions; then it closes all
	cost  made
	clock *rdma.Clock
}

func openNative(ctx context.Context, r *engine.Run, o *options) (*opened, error) {
	n, took, err := pairs.OpenNative(ctx, r, 1, depth, slices.Max(o.Sizes), o.Regions, int(o.Total)/o.Regions)
	if err != nil {
		return nil, err
	}
	n.Both = true
	return &opened{n, n.Close, made{make: took}, n.Devs[0].Caps().Clock}, nil
}

func openNamed(ctx context.Context, r *engine.Run, o *options) (_ *opened, err error) {
	most := slices.Max(o.Sizes)
	p, err := pairs.OpenNodes(ctx, r, [2]int{int(o.Total) + 64*o.Regions, depth * most})
	if err != nil {
		return nil, err
	}
	cfg := lite.ClientConfig{Depth: depth, Wait: lite.WaitPoll}
	n, err := pairs.NewNamed(p, cfg)
	end := func() (each time.Duration, err error) {
		// Each is a call to every node that has it; enough of them say what one costs.
		some, begin := n.Owned[:min(len(n.Owned), 64)], time.Now()
		for _, h := range some {
			err = errors.Join(err, n.Home.FreeRegion(h))
		}
		if len(some) > 0 {
			each = time.Since(begin) / time.Duration(len(some))
		}
		return each, errors.Join(err, p.Close())
	}
	n.Both = true
	var cost made
	if err == nil {
		err = n.Clients(1, depth, most, cfg)
	}
	if err == nil {
		cost.make, err = timed(ctx, o.Regions, func(name string) error {
			return n.Make(name, uint64(o.Total/int64(o.Regions)))
		})
	}
	if err == nil {
		cost.mapped, err = timed(ctx, o.Regions, n.Map)
	}
	if err != nil {
		_, closing := end()
		return nil, errors.Join(err, closing)
	}
	return &opened{n, end, cost, p.Devs[1].Caps().Clock}, nil
}

func timed(ctx context.Context, regions int, do func(name string) error) (each time.Duration, err error) {
	begin := time.Now()
	for i := range regions {
		if err := do(fmt.Sprint("r", i)); err != nil {
			return 0, err
		}
		if i%256 == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
	return time.Since(begin) / time.Duration(regions), nil
}

// compareEach is of how many writes one is compared by default. Arbitrary.
const compareEach = 256

func measure(ctx context.Context, r *engine.Run, o *options, t pairs.Target, cost made,
	now func() int64) (all []reports.Result, err error) {
	w := &pairs.Writes{Target: t, Proof: drive.LocalProof(r, compareEach), Slots: depth, Now: now}
	each := uint64(o.Total / int64(o.Regions))
	for i, size := range o.Sizes {
		rng := rand.New(rand.NewPCG(r.Plan.Seed, uint64(i)))
		w.Size = size
		w.Next = func(int) pairs.Place {
			return pairs.Place{Region: rng.IntN(o.Regions), Off: rng.Uint64N(each-uint64(size)+1) &^ 63}
		}
		n := cmp.Or(int(r.Plan.Iterations), writes)
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
		res := r.Result()
		res.SizeBytes, res.Depth, res.Polling = int64(size), depth, ""
		res.Verification, res.Verified = compared, r.Plan.Verify
		res.DurationNs, res.Operations = took, int64(n)
		res.Parameters["regions"], res.Parameters["total_bytes"] = o.Regions, o.Total
		v := cost.values(map[string]float64{"rate": float64(n) * 1e9 / float64(max(took, 1)),
			"latency_p50_ns": workload.Rank(samples, 50), "latency_p99_ns": workload.Rank(samples, 99)})
		res.Detail = &curves.Point{X: o.X, Values: v}
		all = append(all, res)
		r.Progress(int64(i+1), int64(len(o.Sizes)))
	}
	return all, nil
}

// touch writes to the end of every region, and compares what lies there: one write each, so that all of them are.
func touch(ctx context.Context, r *engine.Run, o *options, t pairs.Target, cost made) (reports.Result, error) {
	size, region := o.Sizes[0], 0
	off := uint64(o.Total/int64(o.Regions)) - uint64(size)
	w := &pairs.Writes{Target: t, Proof: drive.LocalProof(r, 1), Slots: depth, Size: size,
		Now:  func() int64 { return 0 },
		Next: func(int) pairs.Place { region++; return pairs.Place{Region: region - 1, Off: off} }}
	res := r.Result()
	if _, err := w.Do(ctx, o.Regions); err != nil {
		return res, err
	}
	res.SizeBytes, res.Polling = int64(o.X), ""
	res.Verification, res.Verified = w.Take(int64(o.Regions)), r.Plan.Verify
	res.Operations, res.DurationNs = int64(o.Regions), int64(o.Regions)*int64(cost.make)
	res.Parameters["regions"], res.Parameters["total_bytes"] = o.Regions, o.Total
	res.Detail = &curves.Point{X: o.X, Values: cost.values(map[string]float64{})}
	return res, nil
}
