package reports

import (
	"fmt"
	"slices"
	"strings"
)

// callPlace is what calls that are compared share: all but the stack.
type callPlace struct {
	load
	size int64
	rate float64
}

// callsBySide prints one table for each place that several stacks were measured at.
// Names of carriers are long, so each stands on a line of its own above its figures.
func (p *textPrinter) callsBySide(results []Result) {
	type stackRuns struct {
		stack string
		runs  []*Result
	}
	var places []callPlace
	byPlace := map[callPlace][]*stackRuns{}
	for i := range results {
		r := &results[i]
		if r.RPC == nil || r.KV != nil || r.Throughput == nil || r.Operations == 0 {
			continue
		}
		at := callPlace{loadOf(r), r.SizeBytes, r.Rate}
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
		t := table{columns: []column{{name: "mean", unit: "usec"}, {name: "p50", unit: "usec"}, {name: "p99", unit: "usec"}, {name: "calls", unit: "1/sec"}, {name: "BW", unit: throughputColumns(p.Gbits)[2].unit},
			{name: "CPU", unit: "usec/call"}, {name: "mean", unit: "ratio"}, {name: "p99", unit: "ratio"}, {name: "calls", unit: "ratio"}}}
		if at.rpc.call == callOneway {
			t.columns[3].name, t.columns[8].name, t.columns[5].unit = "messages", "messages", "usec/msg"
		}
		repeated := false
		base := callFiguresOf(stacks[0].runs)
		for _, s := range stacks {
			repeated = repeated || len(s.runs) > 1
			f := callFiguresOf(s.runs)
			t.rows = append(t.rows, row{span: printable(s.stack)})
			t.add(f.cells(base, p.Gbits)...)
		}
		p.line("")
		p.styled(bold, "side by side: "+at.what()+", "+plural(at.size, "byte")+", ratio to "+printable(stacks[0].stack))
		conditions := at.conditions()
		if at.rate > 0 {
			conditions += ", " + rateText(at.rate) + " offered a second"
		}
		if repeated {
			conditions += ", median of repeats"
		}
		p.wrapped(conditions)
		p.table(&t)
	}
}

// callFigures are medians over repeats; times are 0 where latencies mean nothing.
type callFigures struct {
	mean, p50, p99, rate, bytes, cpu float64
	few                              bool // the p99 rests on too few samples
}

func callFiguresOf(runs []*Result) callFigures {
	of := func(figure func(r *Result) float64) float64 {
		v := make([]float64, len(runs))
		for i, r := range runs {
			v[i] = figure(r)
		}
		return median(v)
	}
	f := callFigures{
		rate:  of(func(r *Result) float64 { return r.Throughput.OperationsPerSecond }),
		bytes: of(func(r *Result) float64 { return r.Throughput.BytesPerSecond }),
		cpu:   of(cpuPerCall),
	}
	if runs[0].Latency != nil {
		f.mean = of(func(r *Result) float64 { return r.latency().Mean })
		f.p50 = of(func(r *Result) float64 { return r.latency().P50 })
		f.p99 = of(func(r *Result) float64 { return r.latency().P99 })
		f.few = percentileCell(runs[0].Latency, "p99").mark
	}
	return f
}

// latency is the result's, empty where it has none.
func (r *Result) latency() *Latency {
	if r.Latency == nil {
		return &Latency{}
	}
	return r.Latency
}

// cpuPerCall is the processor time of both sides in nanoseconds a call.
func cpuPerCall(r *Result) float64 {
	if r.CPU == nil || r.Operations == 0 {
		return 0
	}
	return r.bothCPU() * 1e9 / float64(r.Operations)
}

// bothCPU is the processor time of both sides in seconds. In one process each side
// names that of the process.
func (r *Result) bothCPU() float64 {
	if r.Label == LabelMem {
		return r.CPU.ClientSeconds
	}
	return r.CPU.ClientSeconds + r.CPU.ServerSeconds
}

func (f callFigures) cells(base callFigures, gbits bool) []cell {
	time := func(ns float64) string {
		if ns == 0 {
			return "-"
		}
		return usec(ns)
	}
	return []cell{{text: time(f.mean)}, {text: time(f.p50)}, {text: time(f.p99), mark: f.few}, {text: number(f.rate, 0)}, {text: bandwidth(f.bytes, gbits)},
		{text: time(f.cpu)}, {text: ratio(f.mean, base.mean)}, {text: ratio(f.p99, base.p99)}, {text: ratio(f.rate, base.rate)}}
}

// callUsage says what connections cost while they stand: once a group, or once for
// each number of connections.
func (p *textPrinter) callUsage(g *groupedResults) {
	said := map[string]bool{}
	for _, r := range g.results {
		if r.RPC == nil {
			continue
		}
		text := r.RPC.usage(r.Label == LabelMem)
		if text == "" {
			continue
		}
		key := fmt.Sprint(r.QPs)
		if said[key] {
			continue
		}
		said[key] = true
		p.wrapped(plural(int64(r.QPs), "connection") + ": " + text)
	}
}

// usage is one sentence on idle processor time and memory.
func (c *RPC) usage(together bool) string {
	var parts []string
	if i := c.Idle; i != nil && i.DurationNs > 0 {
		of := func(s float64) string { return number(100*s*1e9/float64(i.DurationNs), 1) + " %" }
		if together {
			parts = append(parts, "idle CPU "+of(i.ClientSeconds)+" of both sides")
		} else {
			parts = append(parts, "idle CPU client "+of(i.ClientSeconds)+", server "+of(i.ServerSeconds))
		}
	}
	if m := c.Resident; m != nil {
		kib := func(b float64) string { return number(b/1024, 0) + " KiB" }
		if together {
			parts = append(parts, "resident "+kib(float64(m.ClientBytes))+" of both sides, "+kib(m.ClientPerConnection)+" with each connection")
		} else {
			parts = append(parts, "resident client "+kib(float64(m.ClientBytes))+", server "+kib(float64(m.ServerBytes))+
				", of it with each connection "+kib(m.ClientPerConnection)+" and "+kib(m.ServerPerConnection))
		}
	}
	if c.RegisteredBytes > 0 {
		parts = append(parts, "registered "+number(float64(c.RegisteredBytes)/1024, 0)+" KiB a side for each")
	}
	return strings.Join(parts, "; ")
}
