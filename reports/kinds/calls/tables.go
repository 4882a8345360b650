package calls

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// callPlace is what calls that are compared share: all but the stack.
type callPlace struct {
	reports.Load
	size int64
	rate float64
}

// callsBySide prints one table for each place that several stacks were measured at.
// Names of carriers are long, so each stands on a line of its own above its figures.
var callSides = &reports.SideBySide{Rank: 20, Tables: callsBySide}

func callsBySide(results []reports.Result, u view.Units) (out []reports.SideBlock) {
	type stackRuns struct {
		stack string
		runs  []*reports.Result
	}
	var places []callPlace
	byPlace := map[callPlace][]*stackRuns{}
	for i := range results {
		r := &results[i]
		if !plainCalls(r) || r.Throughput == nil || r.Operations == 0 {
			continue
		}
		at := callPlace{reports.LoadOf(r), r.SizeBytes, r.Rate}
		if byPlace[at] == nil {
			places = append(places, at)
		}
		k := slices.IndexFunc(byPlace[at], func(s *stackRuns) bool { return s.stack == r.Stack })
		if k < 0 {
			byPlace[at] = append(byPlace[at], &stackRuns{stack: r.Stack})
			k = len(byPlace[at]) - 1
		}
		byPlace[at][k].runs = append(byPlace[at][k].runs, r)
	}
	for _, at := range places {
		stacks := byPlace[at]
		if len(stacks) < 2 {
			continue
		}
		t := &view.Table{Columns: []view.Column{{Name: "mean", Unit: "us"}, {Name: "p50", Unit: "us"}, {Name: "p99", Unit: "us"}, {Name: "calls", Unit: "/s"}, {Name: "BW", Unit: u.Name()},
			{Name: "CPU", Unit: "us/call"}, {Name: "mean", Unit: "ratio"}, {Name: "p99", Unit: "ratio"}, {Name: "calls", Unit: "ratio"}}}
		if at.Share.(Share).call == callOneway {
			t.Columns[3].Name, t.Columns[8].Name, t.Columns[5].Unit = "messages", "messages", "us/msg"
		}
		repeated := false
		base := callFiguresOf(stacks[0].runs)
		for _, s := range stacks {
			repeated = repeated || len(s.runs) > 1
			f := callFiguresOf(s.runs)
			t.Rows = append(t.Rows, view.Row{Span: view.Printable(s.stack)})
			t.Add(f.cells(base, u)...)
		}
		out = append(out, reports.SideBlock{Title: "side by side: " + at.What() + ", " + view.Plural(at.size, "byte") + ", ratio to " + view.Printable(stacks[0].stack),
			Conditions: reports.BesideConditions(at.Load, at.rate, repeated), Table: t})
	}
	return out
}

// callFigures are medians over repeats; times are 0 where latencies mean nothing.
type callFigures struct {
	mean, p50, p99, rate, bytes, cpu float64
	few                              bool // the p99 rests on too few samples
}

func callFiguresOf(runs []*reports.Result) callFigures {
	of := func(figure func(r *reports.Result) float64) float64 {
		v := make([]float64, len(runs))
		for i, r := range runs {
			v[i] = figure(r)
		}
		return reports.Median(v)
	}
	f := callFigures{
		rate:  of(func(r *reports.Result) float64 { return r.Throughput.OperationsPerSecond }),
		bytes: of(func(r *reports.Result) float64 { return r.Throughput.BytesPerSecond }),
		cpu:   of(cpuPerCall),
	}
	if runs[0].Latency != nil {
		f.mean = of(func(r *reports.Result) float64 { return r.SureLatency().Mean })
		f.p50 = of(func(r *reports.Result) float64 { return r.SureLatency().P50 })
		f.p99 = of(func(r *reports.Result) float64 { return r.SureLatency().P99 })
		f.few = reports.PercentileCell(runs[0].Latency, "p99").Mark
	}
	return f
}

// cpuPerCall is the processor time of both sides in nanoseconds a call.
func cpuPerCall(r *reports.Result) float64 {
	if r.CPU == nil || r.Operations == 0 {
		return 0
	}
	return r.BothCPU() * 1e9 / float64(r.Operations)
}

func (f callFigures) cells(base callFigures, u view.Units) []view.Cell {
	time := func(ns float64) string {
		if ns == 0 {
			return "-"
		}
		return view.Usec(ns)
	}
	return []view.Cell{{Text: time(f.mean)}, {Text: time(f.p50)}, {Text: time(f.p99), Mark: f.few}, {Text: view.Number(f.rate, 0)}, {Text: u.Bandwidth(f.bytes)},
		{Text: time(f.cpu)}, {Text: view.Ratio(f.mean, base.mean)}, {Text: view.Ratio(f.p99, base.p99)}, {Text: view.Ratio(f.rate, base.rate)}}
}

// Usage says what connections cost while they stand: once a group, or once for
// each number of connections.
func Usage(g *reports.Grouped) (lines []string) {
	said := map[string]bool{}
	for _, r := range g.Results {
		text := Of(r).usage(r.Label == reports.LabelMem)
		key := fmt.Sprint(r.QPs)
		if text == "" || said[key] {
			continue
		}
		said[key] = true
		lines = append(lines, view.Plural(int64(r.QPs), "connection")+": "+text)
	}
	return lines
}

// usage is one sentence on idle processor time and memory.
func (c *RPC) usage(together bool) string {
	var parts []string
	if i := c.Idle; i != nil && i.DurationNs > 0 {
		of := func(s float64) string { return view.Number(100*s*1e9/float64(i.DurationNs), 1) + " %" }
		if together {
			parts = append(parts, "idle CPU "+of(i.ClientSeconds)+" of both sides")
		} else {
			parts = append(parts, "idle CPU client "+of(i.ClientSeconds)+", server "+of(i.ServerSeconds))
		}
	}
	if m := c.Resident; m != nil {
		kib := func(b float64) string { return view.Number(b/1024, 0) + " KiB" }
		if together {
			parts = append(parts, "resident "+kib(float64(m.ClientBytes))+" of both sides, "+kib(m.ClientPerConnection)+" with each connection")
		} else {
			parts = append(parts, "resident client "+kib(float64(m.ClientBytes))+", server "+kib(float64(m.ServerBytes))+
				", of it with each connection "+kib(m.ClientPerConnection)+" and "+kib(m.ServerPerConnection))
		}
	}
	if c.RegisteredBytes > 0 {
		parts = append(parts, "registered "+view.Number(float64(c.RegisteredBytes)/1024, 0)+" KiB a side for each")
	}
	return strings.Join(parts, "; ")
}
