package mesh

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/results"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/mesh/verdict"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

const (
	latencySize   = 64
	bandwidthSize = 1 << 20
)

// A device has a rate of its own; what a software stack reaches varies with the machine.
const (
	badLatency         = 2
	badBandwidth       = 0.8
	badBandwidthOfSoft = 0.5
)

const intervals = 10

// mostSources is what a server takes beside a client of its own.
const (
	mostSources = engine.DefaultMaxClients - 1
	mostReduce  = 32
)

func readMeasures(list string) (names []string, err error) {
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !slices.Contains(results.Measures(), name) {
			return nil, fmt.Errorf("%q: want some of %s", name, strings.Join(results.Measures(), ", "))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

func readPairs(name string, size int) (links []verdict.Link, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // only read
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		line, _, _ := strings.Cut(in.Text(), "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		var a, b int
		var more string
		if got, _ := fmt.Sscan(line, &a, &b, &more); got != 2 || a == b || min(a, b) < 0 || max(a, b) >= size {
			return nil, fmt.Errorf("%s:%d: want two ranks from 0 to %d", name, n, size-1)
		}
		if l := verdict.LinkOf(a, b); !slices.Contains(links, l) {
			links = append(links, l)
		}
	}
	if len(links) == 0 {
		err = fmt.Errorf("%s names no pair", name)
	}
	return links, errors.Join(err, in.Err())
}

func (o *Options) pairPlan(spec string, p *plan, tr transports.Stack) (s Stack, err error) {
	caps := tr.Caps()
	if caps.InProcess {
		return s, cli.Usage("check "+spec, errors.New("it is in-process only"), "another --transport")
	}
	s.Spec, s.Measures = spec, p.measures
	s.Plan = engine.Plan{Workloads: catalogue.Table(), Transport: stackspec.ForPeer(spec), Duration: p.window,
		WarmupIterations: 1000, WarmupDuration: p.window / 2, Depth: 16, Verify: true, Seed: o.seed,
		ClientCPU: -1, ServerCPU: -1}
	if slices.ContainsFunc(o.failIf.thresholds, reports.Threshold.OfIntervals) {
		s.Plan.Interval = max(p.window/intervals, time.Millisecond)
	}
	s.Like = reports.Result{Stack: tr.Name(), Label: string(caps.Label), Depth: 1, QPs: 1}
	for _, m := range p.measures {
		pt, err := point(m, spec, p, &s.Plan)
		if err != nil {
			return s, fmt.Errorf("%s: %w", m, err)
		}
		s.Plan.Points = append(s.Plan.Points, pt)
		s.Bad = append(s.Bad, o.failIf.limit(m, s.Like.Label != reports.LabelDevice))
	}
	return s, engine.Check(&s.Plan, tr.Name(), caps)
}

func (f *failIf) limit(measure string, soft bool) float64 {
	if !results.More(measure) {
		return cmp.Or(f.percent[0], badLatency)
	}
	if soft {
		return cmp.Or(f.percent[1], badBandwidthOfSoft)
	}
	return cmp.Or(f.percent[1], badBandwidth)
}

func point(measure, spec string, p *plan, plan *engine.Plan) (engine.Point, error) {
	name, op, size, flags := throughput.Name, "write", bandwidthSize, map[string]string{}
	if stackspec.CallsOnly(spec) {
		op = "call"
	}
	switch measure {
	case results.Latency:
		name, size = latency.Name, latencySize
		if op == "write" {
			op = "send"
		}
	case results.Calls:
		name, op, size = latency.Name, "call", latencySize
	case results.Both:
		flags["bidirectional"] = "true"
	case results.Allreduce:
		if p.place.Size > mostReduce {
			return engine.Point{}, cli.Usage("read --measure", fmt.Errorf("allreduce of %d ranks", p.place.Size),
				fmt.Sprintf("at most %d", mostReduce))
		}
		name, op = allreduce.Name, ""
		flags["ranks"], flags["algorithm"], flags["buffers"], flags["arms"] = fmt.Sprint(p.place.Size), "ring", "reused",
			"none"
	}
	w := workload.Find(catalogue.All(), name)
	set := pflag.NewFlagSet(name, pflag.ContinueOnError)
	w.Flags(set)
	for flag, value := range flags {
		if err := set.Set(flag, value); err != nil {
			return engine.Point{}, err
		}
	}
	with := *plan
	given := []string{"duration"}
	if name == allreduce.Name { // ranks of one machine that have a processor each poll
		given = append(given, "polling")
		if with.Polling = engine.PollingBusy; cmp.Or(p.place.LocalSize, 1) > runtime.NumCPU() {
			with.Polling = engine.PollingEvent
		}
	}
	c := &workload.Common{
		Changed: func(flag string) bool { return flags[flag] != "" || slices.Contains(given, flag) }, Plan: &with,
		Workloads: []string{name}, CallsOnly: op == "call", Sizes: []int{size}, Rates: []float64{0},
		AppWork: []time.Duration{0}, QPs: []int{0}, Outstanding: []int{0}}
	if op != "" {
		c.Ops = []string{op}
	}
	points, err := w.Points(c)
	if err == nil && len(points) != 1 {
		err = fmt.Errorf("%d points of %s", len(points), name)
	}
	if err != nil {
		return engine.Point{}, err
	}
	return points[0], nil
}

// pointsOf are the points of measures of single pairs; back are those to measure in the other direction, too.
func (s *Stack) pointsOf() (there, back []int) {
	for i, m := range s.Measures {
		if results.OfPairs(m) {
			there = append(there, i)
			if !results.Whole(m) {
				back = append(back, i)
			}
		}
	}
	return there, back
}

// together measures those in which many ranks take part at once, and repeats rounds that had a bad pair.
func (c *coordinator) together(ctx context.Context, plan int, shifts []int) error {
	n := len(c.members)
	for point, m := range c.stacks[plan].Measures {
		var rounds [][]Task
		task := func(from, to int) Task { return Task{Plan: plan, From: from, To: to, Points: []int{point}} }
		switch m {
		case results.Shift:
			for _, k := range shifts {
				var round []Task
				for r := range n {
					round = append(round, task(r, (r+k)%n))
				}
				rounds = append(rounds, round)
			}
		case results.ManyToOne:
			for to := range n {
				var round []Task
				for k := 1; k <= min(n-1, mostSources); k++ {
					round = append(round, task((to+k)%n, to))
				}
				rounds = append(rounds, round)
			}
		case results.Allreduce:
			t := task(0, 1)
			for r := 2; r <= n; r++ {
				if c.isGone(r % n) {
					continue
				}
				t.More = append(t.More, c.members[r%n].Addr)
			}
			if len(t.More) < n-1 || c.isGone(1) {
				c.take(t, &Done{Error: "not all ranks are there"})
				continue
			}
			rounds = [][]Task{{t}}
		}
		for _, round := range rounds {
			if err := c.begun(ctx, round); err != nil {
				return err
			}
		}
		if m == results.Allreduce {
			continue
		}
		bad := c.badPairs(plan, m)
		repeated := 0
		for _, round := range rounds {
			if repeated < mostRepeated && slices.ContainsFunc(round, func(t Task) bool {
				return bad[verdict.Pair{From: t.From, To: t.To}]
			}) {
				repeated++
				for range times {
					if err := c.begun(ctx, round); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

const mostRepeated = 8

func (c *coordinator) badPairs(plan int, measure string) map[verdict.Pair]bool {
	bad := map[verdict.Pair]bool{}
	for _, m := range c.measures(plan) {
		if m.Name == measure {
			bad = m.Bad()
		}
	}
	return bad
}

func (c *coordinator) begun(ctx context.Context, round []Task) error {
	for _, t := range round {
		j := &job{link: verdict.LinkOf(t.From, t.To), tasks: []Task{t}}
		if c.areApart(t.Plan, j.link) {
			continue
		}
		if c.isGone(t.From) || c.isGone(t.To) {
			c.giveUp(j)
			continue
		}
		c.occupy(j, -1)
		c.start(j)
	}
	return c.wait(ctx, nil)
}
