package calls

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// callAxis is one thing that a sweep of calls changes.
type callAxis struct {
	name  string // in titles
	label string // of the axis
	param string // of the grpc layer, dropped from the names of series; empty for the load's
	of    func(s *reports.Measured) float64
	tick  func(v float64) string
	log   bool
}

func countTick(v float64) string { return strconv.FormatInt(int64(v), 10) }

var callAxes = []callAxis{
	{"connections", "Connections", "", func(s *reports.Measured) float64 { return float64(s.QPs) }, countTick, true},
	{"calls outstanding", "Calls outstanding on a connection", "", func(s *reports.Measured) float64 { return float64(s.Depth) }, countTick, true},
	{"busy time", "Busy time before a caller sleeps", "busy", func(s *reports.Measured) float64 { return float64(Of(s.Result).BusyNs) }, view.NsLabel, false},
	{"pollers", "Background pollers", "pollers", func(s *reports.Measured) float64 { return float64(Of(s.Result).Pollers) }, countTick, false},
	{"ring", "Receive ring of a connection", "ring", func(s *reports.Measured) float64 { return float64(Of(s.Result).RingBytes) }, func(v float64) string { return reports.SizeLabel(int64(v)) }, true},
}

// has tells whether a result has a place on the axis.
func (a *callAxis) has(s *reports.Measured) bool {
	switch a.param {
	case "":
		return true
	case "ring":
		return Of(s.Result).RingBytes > 0
	}
	return Of(s.Result).Mode == "bpev"
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
	reports.Load
	size int64
	rate float64
}

func (a *callAxis) key(s *reports.Measured) callKey {
	k := callKey{reports.LoadOf(s.Result), s.SizeBytes, s.Rate}
	switch a.name {
	case "connections":
		k.Load = k.AcrossQPs()
	case "calls outstanding":
		k.Depth = 0
	}
	return k
}

// conditions of all points but what the axis shows.
func (a *callAxis) conditions(k callKey) string {
	s := k.Load.Conditions()
	if k.Depth == 0 {
		s = strings.Replace(s, "0 calls outstanding on each connection, ", "", 1)
		s = strings.Replace(s, "0 streams outstanding on each connection, ", "", 1)
	}
	if k.rate > 0 {
		s += ", " + view.RateLabel(k.rate) + " offered"
	}
	return s
}

// Section is calls against everything that was swept.
var Section = &reports.PageSection{Rank: 51, Of: callCharts}

func callCharts(set *reports.Set) view.Section {
	s := view.Section{ID: "calls", Title: "Calls",
		Intro: "Latency is that of the whole call: the marker is the median, the whisker reaches the 99th percentile. Idle CPU is that of both processes while all connections stand and nothing is called; memory is what became resident on both sides with each connection."}
	for i := range callAxes {
		a := &callAxes[i]
		for _, g := range reports.GroupBy(set.Samples, func(x *reports.Measured) (callKey, bool) {
			if Of(x.Result) == nil || x.Operations == 0 || !a.has(x) {
				return callKey{}, false
			}
			return a.key(x), true
		}) {
			s.Figures = append(s.Figures, callFiguresOver(a, g)...)
		}
	}
	return s
}

// callFigures are the charts of one axis at one place; none when nothing was swept.
func callFiguresOver(a *callAxis, g *reports.Group[callKey]) []view.Figure {
	lines := map[string][]*reports.Measured{}
	var names []string
	var values []float64
	for _, x := range g.Samples {
		name := a.without(x.SeriesName)
		if lines[name] == nil {
			names = append(names, name)
		}
		lines[name] = append(lines[name], x)
	}
	// A line of one point shows nothing of the axis.
	names = slices.DeleteFunc(names, func(n string) bool {
		return !slices.ContainsFunc(lines[n], func(x *reports.Measured) bool { return a.of(x) != a.of(lines[n][0]) })
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
	scaleX := view.Scale{Log: a.log, Lo: values[0], Hi: values[len(values)-1]}
	var ticks []view.Tick
	for _, v := range spreadValues(values, 8) {
		ticks = append(ticks, view.Tick{At: v, Label: a.tick(v)})
	}
	asked := make([]string, len(names))
	for i, n := range names {
		asked[i] = a.without(lines[n][0].Short)
	}
	short := reports.ShortNames(names, asked)
	title := fmt.Sprintf("%s, %s", view.Capital(g.Key.What()), reports.SizeLabel(g.Key.size))
	var out []view.Figure
	add := func(what, yLabel string, unit func(float64) string, of func(runs []*reports.Measured) (y, high float64, tip string)) {
		var drawn []view.Series
		for slot, n := range names {
			line := view.Series{Name: n, Short: short[slot], Slot: slot}
			for _, at := range reports.GroupBy(lines[n], func(x *reports.Measured) (float64, bool) { return a.of(x), true }) {
				if y, high, tip := of(at.Samples); y > 0 {
					line.Points = append(line.Points, view.Point{X: at.Key, Y: y, High: high, Tip: fmt.Sprintf("%s\n%s %s\n%s", n, a.name, a.tick(at.Key), tip)})
				}
			}
			slices.SortStableFunc(line.Points, func(p, q view.Point) int { return cmp.Compare(p.X, q.X) })
			if len(line.Points) > 0 {
				drawn = append(drawn, line)
			}
		}
		if len(drawn) == 0 {
			return
		}
		full := title + ": " + what + " by " + a.name
		chart := &view.LineChart{Title: full, Desc: "The vertical axis is logarithmic. " + charts.DescribeSeries(drawn),
			YLabel: yLabel, XLabel: a.label, X: scaleX, XTicks: ticks, YUnit: unit, Series: drawn}
		out = append(out, view.Figure{Title: full, Caption: a.conditions(g.Key), Chart: chart, Data: charts.PointTable(full, a.name, what, drawn)})
	}
	if g.Samples[0].Latency != nil {
		add("latency", "Latency, median to p99", view.NsLabel, func(runs []*reports.Measured) (float64, float64, string) {
			p50 := reports.MedianOf(runs, func(x *reports.Measured) float64 { return x.SureLatency().P50 })
			p99 := reports.MedianOf(runs, func(x *reports.Measured) float64 { return x.SureLatency().P99 })
			mean := reports.MedianOf(runs, func(x *reports.Measured) float64 { return x.SureLatency().Mean })
			return p50, p99, "p50 " + view.NsLabel(p50) + "\nmean " + view.NsLabel(mean) + "\np99 " + view.NsLabel(p99)
		})
	}
	if g.Key.rate == 0 {
		add("rate", "Rate [1/s]", view.Digits3, func(runs []*reports.Measured) (float64, float64, string) {
			rate := reports.MedianOf(runs, func(x *reports.Measured) float64 { return x.Throughput.OperationsPerSecond })
			bw := reports.MedianOf(runs, func(x *reports.Measured) float64 { return x.Throughput.BytesPerSecond })
			return rate, 0, view.RateLabel(rate) + "\n" + view.BandwidthLabel(bw)
		})
	}
	if a.param == "ring" {
		return out
	}
	add("CPU", "CPU of both sides [s/s]", view.Digits3, func(runs []*reports.Measured) (float64, float64, string) {
		cpu := reports.MedianOf(runs, func(x *reports.Measured) float64 {
			if x.CPU == nil || x.DurationNs == 0 {
				return 0
			}
			return x.BothCPU() * 1e9 / float64(x.DurationNs)
		})
		return cpu, 0, view.Digits3(100*cpu) + " % of one CPU\n" + view.NsLabel(reports.MedianOf(runs, func(x *reports.Measured) float64 { return cpuPerCall(x.Result) })) + " a call"
	})
	add("idle CPU", "Idle CPU of both sides [s/s]", view.Digits3, func(runs []*reports.Measured) (float64, float64, string) {
		cpu := reports.MedianOf(runs, func(x *reports.Measured) float64 {
			if Of(x.Result).Idle == nil {
				return 0
			}
			if x.Label == reports.LabelMem { // both sides name the one process
				return Of(x.Result).Idle.ClientSeconds * 1e9 / float64(Of(x.Result).Idle.DurationNs)
			}
			return (Of(x.Result).Idle.ClientSeconds + Of(x.Result).Idle.ServerSeconds) * 1e9 / float64(Of(x.Result).Idle.DurationNs)
		})
		return cpu, 0, view.Digits3(100*cpu) + " % of one CPU"
	})
	if a.name == "connections" {
		add("memory", "Resident with each connection [KiB]", view.Digits3, func(runs []*reports.Measured) (float64, float64, string) {
			kib := reports.MedianOf(runs, func(x *reports.Measured) float64 {
				if Of(x.Result).Resident == nil {
					return 0
				}
				return (Of(x.Result).Resident.ClientPerConnection + Of(x.Result).Resident.ServerPerConnection) / 1024
			})
			return kib, 0, view.Digits3(kib) + " KiB on both sides together"
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

// PageTables is what calls cost beside their time.
func PageTables(k reports.Condition, samples []*reports.Measured) []view.Grid {
	t := view.Grid{Caption: k.Title() + ": processor time and memory", Note: k.Describe(),
		Head: view.HeadCells("stack", "size", "connections", "outstanding", "CPU a call", "idle CPU client %", "idle CPU server %", "resident client [MiB]", "resident server [MiB]",
			"a connection, client [KiB]", "a connection, server [KiB]", "registered a connection [KiB]")}
	for _, s := range samples {
		r := Of(s.Result)
		if r == nil {
			continue
		}
		row := []view.GridCell{view.NameCell(s.Name()), view.NumberCell(reports.SizeLabel(s.SizeBytes)), view.NumberCell(countTick(float64(s.QPs))), view.NumberCell(countTick(float64(s.Depth))), view.NumberCell(view.NsLabel(cpuPerCall(s.Result)))}
		idle := []string{"-", "-"}
		if i := r.Idle; i != nil && i.DurationNs > 0 {
			idle = []string{view.Number(100*i.ClientSeconds*1e9/float64(i.DurationNs), 1), view.Number(100*i.ServerSeconds*1e9/float64(i.DurationNs), 1)}
		}
		memory := []string{"-", "-", "-", "-"}
		if m := r.Resident; m != nil {
			memory = []string{view.Number(float64(m.ClientBytes)/(1<<20), 1), view.Number(float64(m.ServerBytes)/(1<<20), 1), view.Number(m.ClientPerConnection/1024, 0), view.Number(m.ServerPerConnection/1024, 0)}
		}
		registered := "-"
		if r.RegisteredBytes > 0 {
			registered = view.Number(float64(r.RegisteredBytes)/1024, 0)
		}
		for _, text := range slices.Concat(idle, memory, []string{registered}) {
			row = append(row, view.NumberCell(text))
		}
		t.Rows = append(t.Rows, row)
	}
	return []view.Grid{t}
}
