package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/rdmaperf/rdmaperf/ci/targets"
)

// line is one judged figure.
type line struct {
	Set     string          `json:"set"` // of measurements that it comes from
	What    string          `json:"what"`
	Unit    string          `json:"unit"`
	Values  []float64       `json:"values"` // by repeat
	Median  float64         `json:"median"`
	Bound   float64         `json:"bound"`
	Less    bool            `json:"at_most"`
	Verdict targets.Verdict `json:"verdict"`
}

// The stacks, as schemes names them.
const (
	kernel     = "iwarp"
	raw        = "iwarp(stack=raw,link=shm)"
	acked      = "iwarp(done=acked,stack=raw,link=shm)"
	byRef      = "iwarp(done=acked,stack=raw,link=shm,copies=zero)"
	twoCopies  = "iwarp(stack=raw,link=shm,copies=two)"
	sequential = "iwarp(stack=sequential,link=shm)"
	overXDP    = "iwarp(stack=raw,link=xdp)"
	modelC1    = "iwarp(stack=raw,link=shm,threads=c1)"
	modelC3    = "iwarp(stack=raw,link=shm,threads=c3)"
)

// ratios are the figures of one point by those of another, repeat by repeat.
func (m measures) ratios(a, b key, f figure) (xs []float64) {
	x, y := m.all(a, f), m.all(b, f)
	for i := range min(len(x), len(y)) {
		if y[i] != 0 {
			xs = append(xs, x[i]/y[i])
		}
	}
	return xs
}

// lines are the project's bounds, of the sets in only, or of all where that is empty.
func (m measures) lines(only []string) []line {
	lat := latencyOf
	bw := func(set, stack string, size int64, work int64) key { return streamOf(set, stack, size, 16, work) }
	small := func(k string) key { return lat("schemes", k, 64, 0) }
	const work = appWork
	all := []line{
		{Set: "schemes", What: "64 B over raw/shm", Unit: "us", Values: m.all(small(raw), p50), Bound: 1.2, Less: true},
		{Set: "schemes", What: "64 B over raw/shm by kernel sockets", Unit: "x",
			Values: m.ratios(small(raw), small(kernel), p50), Bound: 0.35, Less: true},
		{Set: "schemes", What: "1000 B over raw/shm", Unit: "us", Values: m.all(lat("schemes", raw, 1000, 0), p50),
			Bound: 1.6, Less: true},
		{Set: "copies", What: "streams of 64 KiB over raw/shm", Unit: "Mb/s",
			Values: m.all(bw("copies", raw, 64<<10, 0), mbits), Bound: 8000},
		{Set: "schemes", What: "64 B: raw by sequential", Unit: "x", Values: m.ratios(small(raw), small(sequential),
			p50), Bound: 1, Less: true},
		{Set: "xdp", What: "64 B over raw/xdp by kernel sockets, on one veth pair", Unit: "x",
			Values: m.ratios(lat("xdp", overXDP, 64, 0), lat("xdp", kernel, 64, 0), p50), Bound: 0.75, Less: true},
		{Set: "threads", What: "64 B: c2 by c3", Unit: "x", Values: m.ratios(lat("threads", raw, 64, 0),
			lat("threads", modelC3, 64, 0), p50), Bound: 1, Less: true},
		{Set: "threads", What: "64 B: c3 by c1", Unit: "x", Values: m.ratios(lat("threads", modelC3, 64, 0),
			lat("threads", modelC1, 64, 0), p50), Bound: 1, Less: true},
		{Set: "threads", What: "1 KiB streams with 5 us of application work: c1 by c2", Unit: "x",
			Values: m.ratios(bw("threads", modelC1, 1024, work), bw("threads", raw, 1024, work), mbits), Bound: 1},
		{Set: "threads", What: "1 KiB streams with 5 us of application work: c3 by c2", Unit: "x",
			Values: m.ratios(bw("threads", modelC3, 1024, work), bw("threads", raw, 1024, work), mbits), Bound: 1},
	}
	for _, w := range []string{"latency", "throughput"} {
		for _, size := range copySizes {
			all = append(all, line{Set: "copies", What: fmt.Sprintf("one copy as good as two: %s of %d B", w, size),
				Unit: "x", Values: m.copies(w, size), Bound: 1})
		}
	}
	if len(only) > 0 {
		all = slices.DeleteFunc(all, func(l line) bool { return !slices.Contains(only, l.Set) })
	}
	for i := range all {
		l := &all[i]
		l.Median = targets.Median(l.Values)
		l.Verdict = targets.Target{Bound: l.Bound, Less: l.Less}.JudgeAll(l.Values)
	}
	return all
}

func printLines(w io.Writer, lines []line) {
	fmt.Fprintf(w, "\n%-58s %10s %22s %12s  %s\n", "bound", "median", "interval", "wanted", "verdict")
	for _, l := range lines {
		median, interval := "-", "-"
		if len(l.Values) > 0 {
			lo, hi := targets.Interval(l.Values)
			median, interval = fmt.Sprintf("%.3f", l.Median), fmt.Sprintf("[%.3f–%.3f]", lo, hi)
		}
		fmt.Fprintf(w, "%-58s %10s %22s %12s  %s\n", l.What, median, interval,
			targets.Target{Bound: l.Bound, Less: l.Less}.Sign()+fmt.Sprintf(" %g %s", l.Bound, l.Unit), l.Verdict)
	}
}
