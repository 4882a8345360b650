// Package qos is the workload of two classes of LITE's clients over time, alone and together: low moves bulk, high
// reads a few bytes. All live in this process, so that some of what one costs the other is the machine's. By the clock
// of a model one thread does what both do, and separate queue pairs separate nothing: its NIC has one pipeline and one
// link. Arms are stacks: lite, and lite with qos=hwsep, swpri or sched.
package qos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
)

const Name = "qos"

const (
	op      = "time"
	bins    = 30        // of a run
	phases  = 3         // low alone, both, high alone
	bulk    = 256 << 10 // bytes of one write of low. Arbitrary
	depth   = 8         // of low
	small   = 64        // bytes of one read of high
	records = 4096      // that it reads one after the other: each has its number
	defTime = 3 * time.Second
	// busy are who may hold a processor of Go's. With fewer, a class or a node waits 10 ms for a preemption.
	busy = 4
)

var set = curves.Results(reports.Workload{
	Name: Name, Title: "QoS",
	Intro: "In the first third low moves bulk alone, in the second high reads 64 bytes at a time as well, in the " +
		"last high is alone. Low writes 256 KiB with 8 under way, high reads 64 bytes; first third low alone, second " +
		"both, last third high alone.",
	Dims: []reports.DimDef{{Name: "at_s", Unit: "s", Help: "time from the begin of the run"}},
	Figures: []reports.FigureDef{
		{Name: "high_p50_ns", Quantity: reports.QuantityTime, Help: "Latency of high, median"},
		{Name: "high_p99_ns", Quantity: reports.QuantityTime, Help: "Latency of high, p99"},
		{Name: "high_rate", Quantity: reports.QuantityRate, Better: reports.More, Help: "Reads of high a second"},
		{Name: "low_bytes", Quantity: reports.QuantityBytes, Better: reports.More, Help: "Throughput of low"},
	},
}, "both nodes and both classes in one process", map[string]reports.DimDef{op: {Name: "at_s", Unit: "s"}})

type options struct{ Window time.Duration }

type Workload struct {
	engine.ClientOnly
}

func (*Workload) Flags(*pflag.FlagSet) {}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    set,
		Summary:    "high and low priority of LITE over time, alone and together",
		Examples:   "rdmaperf run --transport 'lite+iwarp,lite(qos=hwsep)+iwarp,lite(qos=swpri)+iwarp' --workload qos",
		OwnThreads: true,
		Over:       pairs.NoTier,
	}
}

func (f *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	if s := c.AnyOf("op", "size", "all", "qp", "qp-sweep", "threads", "polling", "iters"); s != "" && c.Alone() {
		return nil, values.Wrong(s, "the workload qos has two threads and runs for -D, in three parts")
	}
	o := options{defTime}
	if c.Changed("duration") {
		o.Window = max(c.Plan.Duration, 30*time.Millisecond)
	}
	return []engine.Point{{Workload: Name, Alone: true, Time: o.Window, Op: op, Size: small,
		Words: "qos: a low and a high class over time", Options: engine.PackOptions(o)}}, nil
}

func (o *options) check(int) error {
	if o.Window <= 0 || o.Window > time.Hour {
		return fmt.Errorf("a window of %v: want more than 0 and at most 1h", o.Window)
	}
	return nil
}

type bin struct {
	high     []int64 // latencies, ns
	low      int64   // writes
	compared reports.Verification
}

type parts struct {
	now       func() time.Duration // since the begin
	window    time.Duration
	cpus      bool // whether what was used says anything
	low, high [bins]bin
	used      [bins + 1]used
}

type used struct {
	seen             atomic.Bool
	process, machine time.Duration
}

// at is the part that is now. Who sees one first reads what was used up to then.
func (p *parts) at() int {
	i := int(p.now() * bins / p.window)
	if u := &p.used[min(i, bins)]; p.cpus && !u.seen.Load() && !u.seen.Swap(true) {
		u.process, u.machine, _ = engine.ReadCPU()
	}
	return i
}

// cpu is what was used in a part, nil when nobody was run at its begin or end.
func (p *parts) cpu(i int) *reports.CPU {
	from, to := &p.used[i], &p.used[i+1]
	if !from.seen.Load() || !to.seen.Load() {
		return nil
	}
	return &reports.CPU{ClientSeconds: (to.process - from.process).Seconds(),
		MachineSeconds: max(to.machine-from.machine, 0).Seconds()}
}

func (*Workload) Client(ctx context.Context, r *engine.Run) (err error) {
	o, err := engine.ReadOptions(r.Point, (*options).check)
	if err != nil {
		return err
	}
	const room = (depth + 2) * bulk
	p, err := pairs.OpenNodes(ctx, r, [2]int{room, room})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	low, err := openLow(p)
	if err != nil {
		return err
	}
	high, err := openHigh(p)
	if err != nil {
		return err
	}
	var results []reports.Result
	if clock := p.Devs[1].Caps().Clock; clock != nil {
		results, err = byTurns(ctx, r, o.Window, low, high, clock)
	} else {
		results, err = measure(ctx, r, o.Window, low, high.read)
	}
	for i := range results {
		_, results[i].Parameters["clock"] = pairs.Clock(r.Stack.Caps().Clock)
	}
	r.Add(results...)
	return err
}

// compareEach is of how many writes of low one is compared. Arbitrary: a look costs about a write.
const compareEach = 64

func measure(ctx context.Context, r *engine.Run, window time.Duration, low pairs.Target,
	read func(record int, b []byte) error) ([]reports.Result, error) {
	defer engine.ReserveProcs(busy)()
	start := time.Now()
	p := &parts{now: func() time.Duration { return time.Since(start) }, window: window, cpus: true}
	w := p.writes(ctx, r, low)
	var wg sync.WaitGroup
	var errLow, errHigh error
	wg.Go(func() { _, errLow = w.Do(ctx, math.MaxInt) })
	wg.Go(func() { errHigh = p.alone(ctx, drive.LocalProof(r, 1), read) })
	wg.Wait()
	if err := errors.Join(errLow, errHigh); err != nil {
		return nil, err
	}
	return p.results(r, w), ctx.Err()
}

func (p *parts) writes(ctx context.Context, r *engine.Run, low pairs.Target) *pairs.Writes {
	w := &pairs.Writes{Target: low, Proof: drive.LocalProof(r, compareEach), Slots: depth, Size: bulk,
		Apart: true, Now: func() int64 { return 0 },
		Next: func(slot int) pairs.Place { return pairs.Place{Off: uint64(slot * bulk)} },
		More: func() bool { return p.at() < bins*(phases-1)/phases && ctx.Err() == nil }}
	var ended [depth]int // the bins in which writes did
	w.Ended = func(slot int) {
		ended[slot] = min(p.at(), bins-1)
		p.low[ended[slot]].low++
	}
	w.Found = func(slot int) { p.low[ended[slot]].compared.Add(w.Take(0)) }
	return w
}

func (p *parts) results(r *engine.Run, w *pairs.Writes) (results []reports.Result) {
	each := p.window.Seconds() / bins
	for i := range bins {
		h := p.high[i].high
		n := int64(len(h)) + p.low[i].low
		v := map[string]float64{"low_bytes": float64(p.low[i].low*bulk) / each, "high_rate": float64(len(h)) / each}
		if len(h) > 0 {
			v["high_p50_ns"], v["high_p99_ns"] = workload.Rank(h, 50), workload.Rank(h, 99)
		}
		res := r.Result()
		res.Polling = ""
		res.DurationNs, res.Operations, res.CPU = int64(each*1e9), n, p.cpu(i)
		res.Verification, res.Verified = w.Take(n), r.Plan.Verify
		for _, b := range []*bin{&p.low[i], &p.high[i]} {
			res.Verification.Add(&b.compared) // whose messages w took already
		}
		res.Detail = &curves.Point{X: (float64(i) + 0.5) * each, Values: v}
		results = append(results, res)
	}
	return results
}

// alone is high as a thread: it reads a record at a time from its third on.
func (p *parts) alone(ctx context.Context, compare *drive.Proof, read func(record int, b []byte) error) error {
	b := make([]byte, small)
	t := time.NewTimer(p.window/phases - p.now())
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	for n := 0; ; n++ {
		part := p.at()
		if part >= bins || ctx.Err() != nil {
			return ctx.Err()
		}
		record := n % records
		start := p.now()
		if err := read(record, b); err != nil {
			return err
		}
		if err := p.took(part, p.now()-start, compare, b, record); err != nil {
			return err
		}
	}
}

// took notes a read of high that began in a part, and compares what came.
func (p *parts) took(part int, d time.Duration, compare *drive.Proof, b []byte, record int) error {
	out := &p.high[part]
	out.high = append(out.high, int64(d))
	if compare.L.Sh.Verify && !compare.Same(b, highSender, uint64(record)) {
		return compare.Corrupt(b, highSender, uint64(record))
	}
	out.compared.Add(compare.Take(0))
	return nil
}
