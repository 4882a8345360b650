package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// callAxis is one thing that a sweep of calls changes.
type callAxis struct {
	name  string // in titles
	label string // of the axis
	param string // of the grpc layer, dropped from the names of series; empty for the load's
	of    func(s *sample) float64
	tick  func(v float64) string
	log   bool
}

func countTick(v float64) string { return strconv.FormatInt(int64(v), 10) }

var callAxes = []callAxis{
	{"connections", "Connections", "", func(s *sample) float64 { return float64(s.QPs) }, countTick, true},
	{"calls outstanding", "Calls outstanding on a connection", "", func(s *sample) float64 { return float64(s.Depth) }, countTick, true},
	{"busy time", "Busy time before a caller sleeps", "busy", func(s *sample) float64 { return float64(s.RPC.BusyNs) }, nsLabel, false},
	{"pollers", "Background pollers", "pollers", func(s *sample) float64 { return float64(s.RPC.Pollers) }, countTick, false},
	{"ring", "Receive ring of a connection", "ring", func(s *sample) float64 { return float64(s.RPC.RingBytes) }, func(v float64) string { return sizeLabel(int64(v)) }, true},
}

// has tells whether a result has a place on the axis.
func (a *callAxis) has(s *sample) bool {
	switch a.param {
	case "":
		return true
	case "ring":
		return s.RPC.RingBytes > 0
	}
	return s.RPC.Mode == "bpev"
}

// without is a stack's name without the axis's own parameter.
func (a *callAxis) without(stack string) string {
	if a.param == "" {
		return stack
	}
	layer, rest, _ := strings.Cut(stack, ")")
	parts := strings.Split(layer, ",")
	parts = slices.DeleteFunc(parts, func(p string) bool { return strings.HasPrefix(p, a.param+"=") })
	return strings.Join(parts, ",") + ")" + rest
}

// callKey is what the points of one curve over an axis share.
type callKey struct {
	load
	size int64
	rate float64
}

func (a *callAxis) key(s *sample) callKey {
	k := callKey{loadOf(s.Result), s.SizeBytes, s.rate}
	switch a.name {
	case "connections":
		k.load = k.acrossQPs()
	case "calls outstanding":
		k.depth = 0
	}
	return k
}

// conditions of all points but what the axis shows.
func (a *callAxis) conditions(k callKey) string {
	s := k.load.conditions()
	if k.depth == 0 {
		s = strings.Replace(s, "0 calls outstanding on each connection, ", "", 1)
		s = strings.Replace(s, "0 streams outstanding on each connection, ", "", 1)
	}
	if k.rate > 0 {
		s += ", " + rateLabel(k.rate) + " offered"
	}
	return s
}

// callSection is calls against everything that was swept.
func (c *charts) callSection(set *sampleSet) section {
	s := section{ID: "calls", Title: "Calls",
		Intro: "Latency is that of the whole call: the marker is the median, the whisker reaches the 99th percentile. Idle CPU is that of both processes while all connections stand and nothing is called; memory is what became resident on both sides with each connection."}
	for i := range callAxes {
		a := &callAxes[i]
		for _, g := range groupBy(set.samples, func(x *sample) (callKey, bool) {
			if x.RPC == nil || x.Operations == 0 || !a.has(x) {
				return callKey{}, false
			}
			return a.key(x), true
		}) {
			s.Figures = append(s.Figures, c.callFigures(a, g)...)
		}
	}
	return s
}

// callFigures are the charts of one axis at one place; none when nothing was swept.
func (c *charts) callFigures(a *callAxis, g *group[callKey]) []figure {
	lines := map[string][]*sample{}
	var names []string
	var values []float64
	for _, x := range g.samples {
		name := a.without(x.series)
		if lines[name] == nil {
			names = append(names, name)
		}
		lines[name] = append(lines[name], x)
	}
	// A line of one point shows nothing of the axis.
	names = slices.DeleteFunc(names, func(n string) bool {
		return !slices.ContainsFunc(lines[n], func(x *sample) bool { return a.of(x) != a.of(lines[n][0]) })
	})
	for _, n := range names {
		for _, x := range lines[n] {
			values = append(values, a.of(x))
		}
	}
	if slices.Sort(values); len(names) == 0 {
		return nil
	}
	values = slices.Compact(values)
	scaleX := scale{log: a.log, lo: values[0], hi: values[len(values)-1]}
	var ticks []tick
	for _, v := range spreadValues(values, 8) {
		ticks = append(ticks, tick{v, a.tick(v)})
	}
	asked := make([]string, len(names))
	for i, n := range names {
		asked[i] = a.without(lines[n][0].short)
	}
	short := shortNames(names, asked)
	title := fmt.Sprintf("%s, %s", capital(g.key.what()), sizeLabel(g.key.size))
	var out []figure
	add := func(what, yLabel string, unit func(float64) string, of func(runs []*sample) (y, high float64, tip string)) {
		var drawn []series
		for slot, n := range names {
			line := series{name: n, short: short[slot], slot: slot}
			for _, at := range groupBy(lines[n], func(x *sample) (float64, bool) { return a.of(x), true }) {
				if y, high, tip := of(at.samples); y > 0 {
					line.points = append(line.points, point{x: at.key, y: y, high: high, tip: fmt.Sprintf("%s\n%s %s\n%s", n, a.name, a.tick(at.key), tip)})
				}
			}
			slices.SortStableFunc(line.points, func(p, q point) int { return cmp.Compare(p.x, q.x) })
			if len(line.points) > 0 {
				drawn = append(drawn, line)
			}
		}
		if len(drawn) == 0 {
			return
		}
		full := title + ": " + what + " by " + a.name
		chart := &lineChart{id: c.id(), title: full, desc: "The vertical axis is logarithmic. " + describeSeries(drawn),
			yLabel: yLabel, xLabel: a.label, x: scaleX, xTicks: ticks, yUnit: unit, series: drawn}
		out = append(out, figure{full, a.conditions(g.key), chart.render(), pointTable(full, a.name, what, drawn)})
	}
	if g.samples[0].Latency != nil {
		add("latency", "Latency, median to p99", nsLabel, func(runs []*sample) (float64, float64, string) {
			p50 := medianOf(runs, func(x *sample) float64 { return x.latency().P50 })
			p99 := medianOf(runs, func(x *sample) float64 { return x.latency().P99 })
			mean := medianOf(runs, func(x *sample) float64 { return x.latency().Mean })
			return p50, p99, "p50 " + nsLabel(p50) + "\nmean " + nsLabel(mean) + "\np99 " + nsLabel(p99)
		})
	}
	if g.key.rate == 0 {
		add("rate", "Rate [1/s]", digits3, func(runs []*sample) (float64, float64, string) {
			rate := medianOf(runs, func(x *sample) float64 { return x.Throughput.OperationsPerSecond })
			bw := medianOf(runs, func(x *sample) float64 { return x.Throughput.BytesPerSecond })
			return rate, 0, rateLabel(rate) + "\n" + bandwidthLabel(bw)
		})
	}
	if a.param == "ring" {
		return out
	}
	add("CPU", "CPU of both sides [s/s]", digits3, func(runs []*sample) (float64, float64, string) {
		cpu := medianOf(runs, func(x *sample) float64 {
			if x.CPU == nil || x.DurationNs == 0 {
				return 0
			}
			return x.bothCPU() * 1e9 / float64(x.DurationNs)
		})
		return cpu, 0, digits3(100*cpu) + " % of one CPU\n" + nsLabel(medianOf(runs, func(x *sample) float64 { return cpuPerCall(x.Result) })) + " a call"
	})
	add("idle CPU", "Idle CPU of both sides [s/s]", digits3, func(runs []*sample) (float64, float64, string) {
		cpu := medianOf(runs, func(x *sample) float64 {
			if x.RPC.Idle == nil {
				return 0
			}
			if x.Label == LabelMem { // both sides name the one process
				return x.RPC.Idle.ClientSeconds * 1e9 / float64(x.RPC.Idle.DurationNs)
			}
			return (x.RPC.Idle.ClientSeconds + x.RPC.Idle.ServerSeconds) * 1e9 / float64(x.RPC.Idle.DurationNs)
		})
		return cpu, 0, digits3(100*cpu) + " % of one CPU"
	})
	if a.name == "connections" {
		add("memory", "Resident with each connection [KiB]", digits3, func(runs []*sample) (float64, float64, string) {
			kib := medianOf(runs, func(x *sample) float64 {
				if x.RPC.Resident == nil {
					return 0
				}
				return (x.RPC.Resident.ClientPerConnection + x.RPC.Resident.ServerPerConnection) / 1024
			})
			return kib, 0, digits3(kib) + " KiB on both sides together"
		})
	}
	return out
}

// spreadValues picks n of the values evenly, with the first and the last.
func spreadValues(values []float64, n int) []float64 {
	if len(values) <= n {
		return values
	}
	out := make([]float64, 0, n)
	for i := range n {
		out = append(out, values[i*(len(values)-1)/(n-1)])
	}
	return out
}

// callTable is what calls cost beside their time.
func callTable(k condition, samples []*sample) htmlTable {
	t := htmlTable{Caption: k.title() + ": processor time and memory", Note: k.describe(),
		Head: headCells("stack", "size", "connections", "outstanding", "CPU a call", "idle CPU client %", "idle CPU server %", "resident client [MiB]", "resident server [MiB]",
			"a connection, client [KiB]", "a connection, server [KiB]", "registered a connection [KiB]")}
	for _, s := range samples {
		r := s.RPC
		if r == nil {
			continue
		}
		row := []htmlCell{nameCell(s.name()), numberCell(sizeLabel(s.SizeBytes)), numberCell(countTick(float64(s.QPs))), numberCell(countTick(float64(s.Depth))), numberCell(nsLabel(cpuPerCall(s.Result)))}
		idle := []string{"-", "-"}
		if i := r.Idle; i != nil && i.DurationNs > 0 {
			idle = []string{number(100*i.ClientSeconds*1e9/float64(i.DurationNs), 1), number(100*i.ServerSeconds*1e9/float64(i.DurationNs), 1)}
		}
		memory := []string{"-", "-", "-", "-"}
		if m := r.Resident; m != nil {
			memory = []string{number(float64(m.ClientBytes)/(1<<20), 1), number(float64(m.ServerBytes)/(1<<20), 1), number(m.ClientPerConnection/1024, 0), number(m.ServerPerConnection/1024, 0)}
		}
		registered := "-"
		if r.RegisteredBytes > 0 {
			registered = number(float64(r.RegisteredBytes)/1024, 0)
		}
		for _, text := range slices.Concat(idle, memory, []string{registered}) {
			row = append(row, numberCell(text))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
