// Package charts makes charts of results of any workload, as data: distributions, and figures by size, rate and
// connections and over time.
package charts

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// FigureSection has the figures that one workload shows, each against what was swept most. A figure without a sweep is
// a bar for each stack. Sizes, rates and connections of latency and throughput have sections of their own.
func FigureSection(set *reports.Set, workload string) view.Section {
	s := view.Section{ID: sectionID(workload),
		Intro: "Figures of this workload. The whisker above a median reaches the 99th percentile; repeats are their " +
			"median."}
	for _, g := range reports.GroupBy(set.Samples, func(x *reports.Measured) (reports.Load, bool) {
		return reports.LoadOf(x.Result).AcrossQPs(), x.Workload == workload
	}) {
		s.Title = g.Key.Called()
		axes := axesOf(g.Samples)
		for _, f := range figuresOf(g.Samples) {
			var drawn []view.Figure
			for _, a := range axes {
				if len(drawn) == 0 && (f.own || !a.common) {
					drawn = a.figures(g.Key, f, g.Samples)
				}
			}
			if len(drawn) == 0 && f.own {
				drawn = []view.Figure{barFigure(g.Key, f, g.Samples)}
			}
			s.Figures = append(s.Figures, drawn...)
		}
	}
	return s
}

func sectionID(workload string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, workload)
}

// shown is a figure that is drawn; tail is the figure of its whisker.
type shown struct {
	reports.Figure
	tail string
	own  bool
}

// figuresOf are those of the samples without what a whisker or another percentile says already.
func figuresOf(samples []*reports.Measured) (all []shown) {
	for _, x := range samples {
		figures := x.ShownFigures()
		has := func(name string) bool { return reports.HasFigure(figures, name) }
		for _, f := range figures {
			prefix, last := reports.SplitFigure(f.Name)
			if last == "p99" && has(prefix+"p50") || last == "mean" && has(prefix+"p50") ||
				slices.ContainsFunc(all, func(o shown) bool { return o.Name == f.Name }) {
				continue
			}
			d := shown{Figure: f, own: reports.HasFigure(x.OwnFigures(), f.Name)}
			if last == "p50" && has(prefix+"p99") {
				d.tail = prefix + "p99"
			}
			all = append(all, d)
		}
	}
	return all
}

// scale is the unit of the figure's axis in units of its values, with its name; times have their own labels.
func (f shown) scale() (by float64, name string) {
	switch f.Quantity {
	case reports.QuantityBytes:
		return 1 << 20, " [MiB/s]"
	case reports.QuantityMemory:
		return 1 << 10, " [KiB]"
	case reports.QuantityRate:
		return 1, " [1/s]"
	}
	return 1, ""
}

func (f shown) tick(v float64) string {
	if f.Quantity == reports.QuantityTime {
		return view.NsLabel(v)
	}
	return view.Digits3(v)
}

func (f shown) label() string {
	_, unit := f.scale()
	return view.Capital(reports.FigureLabel(f.Name)) + view.When(f.tail != "", ", median to p99") + unit
}

// linear tells that the axis of the figure begins at zero; times and memory span decades.
func (f shown) linear() bool {
	return f.Quantity != reports.QuantityTime && f.Quantity != reports.QuantityMemory
}

// axis is something that a sweep changes.
type axis struct {
	name, label string
	common      bool // latency and throughput have a section for it
	of          func(x *reports.Measured) (v float64, ok bool)
	text        func(v float64) string
	series      func(x *reports.Measured) string // the stack without what the axis shows
	dim         string                           // that it is
}

func stackOf(x *reports.Measured) string { return x.SeriesName }

// axesOf are the axes along which the samples differ, the one with the most values first.
func axesOf(samples []*reports.Measured) []axis {
	var all []axis
	differing, _ := reports.Differing(reports.ResultsOf(samples))
	for _, def := range differing {
		a := axis{name: strings.ReplaceAll(def.Name, "_", " "), dim: def.Name, series: stackOf, text: count,
			of: func(x *reports.Measured) (float64, bool) {
				d, _ := x.Dim(def.Name)
				v, err := strconv.ParseFloat(d.Value, 64)
				return v, err == nil
			}}
		a.label = view.Capital(a.name)
		switch def.Unit {
		case "B":
			a.text = func(v float64) string { return reports.SizeLabel(int64(v)) }
		case "ns":
			a.text = view.NsLabel
		case "":
		default:
			a.label += " [" + def.Unit + "]"
		}
		all = append(all, a)
	}
	for _, name := range parameterNames(samples) {
		typed := map[float64]string{}
		for _, x := range samples {
			if p, ok := parameterOf(x.Stack, name); ok {
				typed[p.value] = p.typed
			}
		}
		all = append(all, axis{name: name, label: view.Capital(name), text: func(v float64) string { return typed[v] },
			of: func(x *reports.Measured) (float64, bool) {
				p, ok := parameterOf(x.Stack, name)
				return p.value, ok
			}, series: func(x *reports.Measured) string {
				if p, ok := parameterOf(x.SeriesName, name); ok {
					return p.rest
				}
				return x.SeriesName
			}})
	}
	all = append(all, []axis{
		{"size", "Size", true, func(x *reports.Measured) (float64, bool) { return float64(max(x.SizeBytes, 1)), true },
			func(v float64) string { return reports.SizeLabel(int64(v)) }, stackOf, ""},
		{"offered rate", "Offered rate", true, func(x *reports.Measured) (float64, bool) { return x.Rate, x.Rate > 0 },
			view.RateLabel, stackOf, ""},
		{"connections", "Connections", true, func(x *reports.Measured) (float64, bool) { return float64(x.QPs), true },
			count, stackOf, ""},
	}...)
	all = slices.DeleteFunc(all, func(a axis) bool { return len(a.values(samples)) < 2 })
	slices.SortStableFunc(all,
		func(a, b axis) int { return cmp.Compare(len(b.values(samples)), len(a.values(samples))) })
	return all
}

func count(v float64) string { return view.Number(v, -1) }

func (a *axis) values(samples []*reports.Measured) (values []float64) {
	for _, x := range samples {
		if v, ok := a.of(x); ok {
			values = append(values, v)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// others tells the lines of one chart apart: all dimensions, sizes and connections but the axis.
func (a *axis) others(x *reports.Measured, differing []reports.DimDef, sizes, connections bool) string {
	var words []string
	for _, def := range differing {
		if d, ok := x.Dim(def.Name); ok && def.Name != a.dim {
			name, value := d.Short()
			if _, err := strconv.ParseFloat(value, 64); def.Unit == "" && err != nil {
				words = append(words, value)
			} else {
				words = append(words, strings.ReplaceAll(name, "_", " ")+" "+value)
			}
		}
	}
	if sizes && a.name != "size" {
		words = append(words, reports.SizeLabel(x.SizeBytes))
	}
	if connections && a.name != "connections" {
		words = append(words, view.Plural(int64(x.QPs), "QP"))
	}
	if x.Rate > 0 && a.name != "offered rate" {
		words = append(words, view.RateLabel(x.Rate)+" offered")
	}
	return view.Visible(strings.Join(words, ", "))
}

// figures are the charts of a figure along the axis, by stack where one would have too many lines.
func (a *axis) figures(load reports.Load, f shown, samples []*reports.Measured) []view.Figure {
	lines, xs := a.lines(f, samples)
	if len(lines) == 0 {
		return nil
	}
	parts := [][]view.Series{lines}
	if stacks := reports.Split(samples); len(lines) > view.Slots && len(stacks) > 1 {
		parts = nil
		for _, b := range stacks {
			if own, _ := a.lines(f, b.Runs); len(own) > 0 {
				parts = append(parts, own)
			}
		}
	}
	var out []view.Figure
	for _, of := range parts {
		title := load.Title() + ": " + reports.FigureLabel(f.Name) + " by " + a.name +
			view.When(len(parts) > 1, ", "+of[0].Name)
		out = append(out, a.figure(title, load, f, of, xs))
	}
	return out
}

func (a *axis) figure(title string, load reports.Load, f shown, lines []view.Series, xs []float64) view.Figure {
	var ticks []view.Tick
	for i, x := range xs {
		if step := (len(xs) + 7) / 8; i%step == 0 { // eight labels fit
			ticks = append(ticks, view.Tick{At: x, Label: a.text(x)})
		}
	}
	chart := &view.LineChart{Title: title, Desc: DescribeSeries(lines), YLabel: f.label(), XLabel: a.label,
		X: view.Scale{Log: !even(xs), Lo: xs[0], Hi: xs[len(xs)-1]}, XTicks: ticks, YUnit: f.tick, Linear: f.linear(),
		Series: lines}
	return view.Figure{Title: title, Caption: load.Conditions(), Chart: chart,
		Data: PointTable(title, a.name, reports.FigureLabel(f.Name), lines)}
}

// even tells that a linear axis shows the values well: they are at even steps, or begin at zero.
func even(xs []float64) bool {
	if xs[0] <= 0 {
		return true
	}
	step := xs[1] - xs[0]
	return len(xs) > 2 && !slices.ContainsFunc(xs[2:], func(x float64) bool {
		i := slices.Index(xs, x)
		return x-xs[i-1] > 1.5*step
	})
}

// lines are one for each stack and what else tells samples apart, and where they have points.
func (a *axis) lines(f shown, samples []*reports.Measured) (lines []view.Series, xs []float64) {
	sizes, connections := len(reports.SizesOf(samples)) > 1, len(connectionCounts(samples)) > 1
	differing, _ := reports.Differing(reports.ResultsOf(samples))
	type key struct{ stack, others string }
	groups := reports.GroupBy(samples, func(x *reports.Measured) (key, bool) {
		_, onAxis := a.of(x)
		_, has := x.Figure(f.Name)
		return key{a.series(x), a.others(x, differing, sizes, connections)}, onAxis && has
	})
	stacks := map[string]bool{}
	for _, g := range groups {
		stacks[g.Key.stack] = true
	}
	for _, g := range groups {
		first := g.Samples[0]
		l := view.Series{Name: g.Key.stack, Short: first.Short, Slot: len(lines)}
		if g.Key.others != "" {
			l.Name += ", " + g.Key.others
			if l.Short += " " + g.Key.others; len(stacks) == 1 {
				l.Short = g.Key.others
			}
		} else if len(stacks) > 1 && g.Key.stack == first.SeriesName {
			l.Slot = first.Slot
		}
		for _, at := range reports.GroupBy(g.Samples, func(x *reports.Measured) (float64, bool) { return a.of(x) }) {
			p := f.point(at.Key, at.Samples)
			p.Tip = l.Name + "\n" + a.name + " " + a.text(at.Key) + "\n" + p.Tip
			l.Points = append(l.Points, p)
		}
		slices.SortStableFunc(l.Points, func(p, q view.Point) int { return cmp.Compare(p.X, q.X) })
		if len(l.Points) > 1 {
			lines = append(lines, l)
			for _, p := range l.Points {
				xs = append(xs, p.X)
			}
		}
	}
	slices.Sort(xs)
	return lines, slices.Compact(xs)
}

func (f shown) point(x float64, repeats []*reports.Measured) view.Point {
	median := func(name string) float64 {
		return reports.MedianOf(repeats, func(x *reports.Measured) float64 { v, _ := x.Figure(name); return v })
	}
	by, _ := f.scale()
	v := median(f.Name)
	p := view.Point{X: x, Y: v / by, Few: repeats[0].Mark(f.Name) == "few", Tip: reports.FigureLabel(f.Name) + " " +
		reports.QuantityLabel(f.Quantity, v)}
	if f.tail != "" {
		p.High = median(f.tail) / by
		p.Tip += fmt.Sprintf("\n%s %s", reports.FigureLabel(f.tail), reports.QuantityLabel(f.Quantity, p.High*by))
	}
	return p
}

func barFigure(load reports.Load, f shown, samples []*reports.Measured) view.Figure {
	title := load.Title() + ": " + reports.FigureLabel(f.Name)
	chart := &view.BarChart{Title: title, XLabel: f.label(), Unit: f.tick}
	data := view.Grid{Caption: title, Head: view.HeadCells("series", reports.FigureLabel(f.Name))}
	differing, _ := reports.Differing(reports.ResultsOf(samples))
	var words []string
	for _, b := range reports.Split(samples) {
		for _, g := range reports.GroupBy(b.Runs, func(x *reports.Measured) (string, bool) {
			_, ok := x.Figure(f.Name)
			return new(axis).others(x, differing, false, false), ok
		}) {
			p := f.point(0, g.Samples)
			if p.Few {
				continue
			}
			by, _ := f.scale()
			name := strings.TrimSuffix(b.Series+", "+g.Key, ", ")
			chart.Bars = append(chart.Bars, view.Bar{Block: strings.TrimSuffix(b.Short+", "+g.Key, ", "), Slot: b.Slot,
				Value: p.Y, Text: f.tick(p.Y), Tip: name + "\n" + p.Tip, FirstOfKind: true})
			data.Rows = append(data.Rows,
				[]view.GridCell{view.NameCell(name), view.NumberCell(reports.QuantityLabel(f.Quantity, p.Y*by))})
			words = append(words, name+": "+reports.QuantityLabel(f.Quantity, p.Y*by)+".")
		}
	}
	chart.Desc = strings.Join(words, " ")
	return view.Figure{Title: title, Caption: load.Conditions(), Chart: chart, Data: data}
}
