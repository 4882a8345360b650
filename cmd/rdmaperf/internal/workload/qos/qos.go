// Package qos is the workload of two classes of LITE's clients over time: a low one that
// moves bulk, and a high one that reads a few bytes at a time, alone and together.
//
// # Ownership
//
// A run opens two nodes over two devices, and closes them.
//
// # Limitations
//
// Both nodes and both classes live in this process and share its processors, so that
// some of what one costs the other is the machine's. Arms are stacks: lite, and lite
// with qos=hwsep, swpri or sched.
package qos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Name is the workload's.
const Name = "qos"

const (
	op      = "time"
	bins    = 30        // of a run
	phases  = 3         // low alone, both, high alone
	bulk    = 256 << 10 // bytes of one write of low. Arbitrary
	depth   = 8         // of low
	small   = 64        // bytes of one read of high
	defTime = 3 * time.Second
)

// Room is its row of the table.
var Room = &room.Room{
	Name: Name,
	Work: &engine.Workload{Name: Name, Kind: set.Kind(), Own: &engine.Own{Run: run, Time: func(p *engine.Plan, pt engine.Point) time.Duration {
		var o options
		_ = pt.Options.Unpack(&o) // Point has seen it
		return o.Window
	}},
		Point:    engine.Checked((*options).check),
		Describe: func(engine.Point) string { return "qos: a low and a high class over time" }},
	Summary:    "classes of LITE over time, alone and together",
	OwnThreads: true,
	Flags:      func() room.Flags { return new(flags) },
}

var set = &curves.Set{
	Workload: Name, Called: "QoS", Rank: 48, Since: 8,
	Title: "Classes over time",
	Intro: "In the first third low moves bulk alone, in the second high reads 64 bytes at a time beside it, in the last high is alone.",
	Given: "both nodes and both classes in one process",
	Lead:  "low writes 256 KiB with 8 under way, high reads 64 bytes; first third low alone, second both, last third high alone:",
	Curves: []curves.Curve{{Op: op, Title: "Two classes", XColumn: "at", XLabel: "Time", XText: func(v float64) string { return view.Number(v, 2) + " s" }, LinearX: true,
		Values: []string{"high_p50_ns", "high_p99_ns", "high_rate", "low_bytes"}}},
	Values: []curves.Value{
		{Name: "high_p50_ns", Column: "high p50", Unit: "usec", Per: 1e3, Digits: 2, Label: "Latency of high, median", Text: view.NsLabel, Quantity: reports.QuantityTime},
		{Name: "high_p99_ns", Column: "high p99", Unit: "usec", Per: 1e3, Digits: 2, Label: "Latency of high, p99", Text: view.NsLabel, Quantity: reports.QuantityTime},
		{Name: "high_rate", Column: "high", Unit: "1/sec", Per: 1, Digits: 0, Label: "Reads of high a second", Text: view.RateLabel, Quantity: reports.QuantityRate, Higher: true, Linear: true},
		{Name: "low_bytes", Column: "low", Unit: "MiB/sec", Per: 1 << 20, Digits: 1, Label: "Throughput of low", Text: view.BandwidthLabel, Quantity: reports.QuantityBytes, Higher: true, Linear: true},
	},
}

type options struct{ Window time.Duration }

type flags struct{ room.None }

func (f *flags) Points(p *engine.Plan, c *room.Common) ([]engine.Point, error) {
	o := options{defTime}
	if c.Changed("duration") {
		o.Window = max(p.Duration, 30*time.Millisecond)
	}
	return []engine.Point{{Workload: Name, Op: op, Size: small, Options: engine.PackOptions(o)}}, nil
}

func (f *flags) Register(*pflag.FlagSet) {}

// Check refuses what describes another workload.
func (f *flags) Check(c *room.Common) error {
	if s := c.AnyOf("op", "size", "all", "qp", "qp-sweep", "threads", "polling", "iters"); s != "" && c.Alone() {
		return values.Wrong(s, "the workload qos has two threads and runs for -D, in three parts")
	}
	return nil
}

func (o *options) check(int) error {
	if o.Window <= 0 || o.Window > time.Hour {
		return fmt.Errorf("a window of %v: want more than 0 and at most 1h", o.Window)
	}
	return nil
}

// bin is what happened in one part of the time.
type bin struct {
	high []int64 // latencies, ns
	low  int64   // bytes
}

func run(ctx context.Context, r *engine.OwnRun) (results []reports.Result, err error) {
	var o options
	if err := r.Point.Options.Unpack(&o); err != nil {
		return nil, err
	}
	s, err := pairs.Tier(r, Name)
	if err != nil {
		return nil, err
	}
	p, err := pairs.OpenNodes(ctx, r, s, [2]int{2 * bulk, 2 * bulk})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	home, err := p.Nodes[0].Client(lite.ClientConfig{})
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"low", "high"} {
		if _, err := home.Malloc(lite.RegionConfig{Name: name, Size: bulk, Open: lite.PermRead | lite.PermWrite}); err != nil {
			return nil, err
		}
	}
	var lows, highs [bins]bin
	start := time.Now()
	at := func() int { return int(time.Since(start) * bins / o.Window) }
	var wg sync.WaitGroup
	var errLow, errHigh error
	wg.Add(2)
	go func() { defer wg.Done(); errLow = low(ctx, p.Nodes[1], at, &lows) }()
	go func() {
		defer wg.Done()
		errHigh = high(ctx, p.Nodes[1], start.Add(o.Window/phases), at, &highs)
	}()
	wg.Wait()
	if err := errors.Join(errLow, errHigh); err != nil {
		return nil, err
	}
	each := o.Window.Seconds() / bins
	for i := range bins {
		v := map[string]float64{"low_bytes": float64(lows[i].low) / each, "high_rate": float64(len(highs[i].high)) / each}
		if h := highs[i].high; len(h) > 0 {
			slices.Sort(h)
			v["high_p50_ns"], v["high_p99_ns"] = float64(h[(len(h)-1)/2]), float64(h[(len(h)*99+99)/100-1])
		}
		res := r.Result()
		res.Polling = ""
		res.DurationNs, res.Operations = int64(each*1e9), int64(len(highs[i].high))+lows[i].low/bulk
		res.Detail = &curves.Point{X: (float64(i) + 0.5) * each, Values: v}
		results = append(results, res)
	}
	return results, nil
}

// low writes bulk until two thirds of the time are over.
func low(ctx context.Context, n *lite.Node, at func() int, out *[bins]bin) (err error) {
	c, err := n.Client(lite.ClientConfig{Depth: depth, Wait: lite.WaitAdaptive})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	h, err := c.Map("low", lite.PermWrite, "")
	if err != nil {
		return err
	}
	b, err := c.Alloc(bulk)
	if err != nil {
		return err
	}
	local, err := c.Offset(b)
	if err != nil {
		return err
	}
	ops := make([]lite.Op, depth)
	for i := range ops {
		ops[i] = lite.Op{Kind: lite.OpWrite, Handle: h, Local: local, Len: bulk}
	}
	done := make([]lite.Done, depth)
	for under := 0; ; {
		now := at()
		more := now < bins*2/phases && ctx.Err() == nil
		if !more && under == 0 {
			return ctx.Err()
		}
		if more && under < depth {
			k, err := c.Post(ops[:depth-under])
			if under += k; err != nil && !errors.Is(err, rdma.ErrQueueFull) {
				return err
			}
		}
		k, err := c.Poll(done)
		if err != nil {
			return err
		}
		for i := range done[:k] {
			if done[i].Status != 0 {
				return fmt.Errorf("low: %v", done[i].Status)
			}
		}
		if under -= k; k > 0 {
			out[min(at(), bins-1)].low += int64(k) * bulk
		}
	}
}

// high reads a few bytes at a time from its begin on.
func high(ctx context.Context, n *lite.Node, begin time.Time, at func() int, out *[bins]bin) (err error) {
	c, err := n.Client(lite.ClientConfig{Wait: lite.WaitPoll, Priority: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	h, err := c.Map("high", lite.PermRead, "")
	if err != nil {
		return err
	}
	b, err := c.Alloc(small)
	if err != nil {
		return err
	}
	t := time.NewTimer(time.Until(begin))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		now := at()
		if now >= bins || ctx.Err() != nil {
			return ctx.Err()
		}
		start := time.Now()
		if err := c.Read(h, 0, b); err != nil {
			return err
		}
		out[now].high = append(out[now].high, int64(time.Since(start)))
	}
}
