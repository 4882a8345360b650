package results

import (
	"cmp"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// curve is one chart: what it shows along which axis.
type curve struct {
	title  string
	ops    []string // of results
	xLabel string
	linear bool
	x      func(r *reports.Result) float64
	xText  func(v float64) string
	yLabel string
	y      func(r *reports.Result) (float64, bool)
	yText  func(v float64) string
}

func bytesOf(r *reports.Result) float64 { return float64(r.SizeBytes) }
func sizeText(v float64) string         { return reports.SizeLabel(int64(v)) }
func countText(v float64) string        { return view.Number(v, -1) }

// median is that of a stage.
func median(name string) func(r *reports.Result) (float64, bool) {
	return func(r *reports.Result) (float64, bool) {
		v, ok := r.Figure(name + ".p50")
		return v, ok && v > 0
	}
}

var cost = []string{"repeated"}

var curves = []curve{
	{"Registering", cost, "Size", false, bytesOf, sizeText, "Register, median", median("register"), view.NsLabel},
	{"Deregistering", cost, "Size", false, bytesOf, sizeText, "Deregister, median", median("deregister"), view.NsLabel},
	{"Register, use and deregister", cost, "Size", false, bytesOf, sizeText, "Cycle, median", median("cycle"), view.NsLabel},
	{"Fresh buffers: registering", []string{"new"}, "Size", false, bytesOf, sizeText, "Register, median", median("register"), view.NsLabel},
	{"Fresh buffers: unmapping", []string{"new"}, "Size", false, bytesOf, sizeText, "Unmap, median", median("unmap"), view.NsLabel},
	{"Fresh buffers: map, register, use, deregister, unmap", []string{"new"}, "Size", false, bytesOf, sizeText, "Cycle, median", median("cycle"), view.NsLabel},
	{"Random addresses and lengths", []string{"random"}, "Most bytes of a buffer", false, bytesOf, sizeText, "Register, median", median("register"), view.NsLabel},
	{"Overlapping buffers", []string{"overlapping"}, "Size", false, bytesOf, sizeText, "Register, median", median("register"), view.NsLabel},
	{"Hit ratio of a working set", []string{"set"}, "Working set [buffers]", true, func(r *reports.Result) float64 { return float64(Of(r).WorkingSet) }, countText,
		"Hits [share of all]", func(r *reports.Result) (float64, bool) { return r.Figure("set.hits") }, view.Digits3},
	{"Registering by several threads", []string{"threads"}, "Threads", false, func(r *reports.Result) float64 { return float64(Of(r).Threads) }, countText,
		"Register and deregister, each thread", func(r *reports.Result) (float64, bool) { return r.Figure("each.ns") }, view.NsLabel},
}

// section is what registrations cost against size, working set and threads. Of several
// stacks each has charts of its own: the arms of one are as many lines as can be told apart.
func section(set *reports.Set) view.Section {
	s := view.Section{ID: "registration", Title: "Registration",
		Intro: "Arm none asks the device each time; cache keeps registrations behind their use; prereg registers memory when it is mapped; lazy keeps what was unmapped for a while. The offload is the detour of a process that has another kernel register for it."}
	type key struct {
		pages string
		size  int64 // where the axis is another
		stack string
	}
	for _, c := range curves {
		for _, g := range reports.GroupBy(set.Samples, func(x *reports.Measured) (key, bool) {
			d := Of(x.Result)
			if d == nil || !slices.Contains(c.ops, x.Op) {
				return key{}, false
			}
			if _, ok := c.y(x.Result); !ok {
				return key{}, false
			}
			k := key{pages: d.Pages}
			if len(set.Order) > 1 {
				k.stack = x.Short
			}
			if c.xLabel == "Threads" || d.WorkingSet > 0 {
				k.size = x.SizeBytes
			}
			return k, true
		}) {
			title := c.title + ", " + g.Key.pages + " pages"
			if g.Key.size > 0 {
				title += ", " + reports.SizeLabel(g.Key.size)
			}
			if g.Key.stack != "" {
				title += ": " + g.Key.stack
			}
			s.Figures = append(s.Figures, c.figure(title, g.Samples))
		}
	}
	return s
}

// figure draws one line for each stack, arm and offload.
func (c curve) figure(title string, samples []*reports.Measured) view.Figure {
	var lines []view.Series
	var xs []float64
	slots := map[string]int{}
	series := reports.Split(samples)
	for _, b := range series {
		first := b.Slot
		if len(series) == 1 { // an arm looks the same in the charts of all stacks
			first = 0
		}
		for _, of := range reports.GroupBy(b.Runs, func(x *reports.Measured) (string, bool) {
			d := Of(x.Result)
			name := d.Arm
			if d.Offload != "none" {
				name += ", offload " + d.Offload
			}
			return name, true
		}) {
			if _, ok := slots[of.Key]; !ok {
				slots[of.Key] = len(slots)
			}
			line := view.Series{Name: b.Series + " " + of.Key, Short: of.Key, Slot: slots[of.Key] + first, Thin: Of(of.Samples[0].Result).Offload != "none"}
			for _, at := range reports.GroupBy(of.Samples, func(x *reports.Measured) (float64, bool) { return c.x(x.Result), true }) {
				y := reports.MedianOf(at.Samples, func(x *reports.Measured) float64 { v, _ := c.y(x.Result); return v })
				line.Points = append(line.Points, view.Point{X: at.Key, Y: y, Tip: line.Name + "\n" + c.xText(at.Key) + "\n" + c.yText(y)})
				xs = append(xs, at.Key)
			}
			slices.SortStableFunc(line.Points, func(a, b view.Point) int { return cmp.Compare(a.X, b.X) })
			lines = append(lines, line)
		}
	}
	slices.Sort(xs)
	xs = slices.Compact(xs)
	var ticks []view.Tick
	for i, x := range xs {
		if step := (len(xs) + 7) / 8; i%step == 0 { // eight labels fit
			ticks = append(ticks, view.Tick{At: x, Label: c.xText(x)})
		}
	}
	desc := "Logarithmic axes. "
	if c.linear {
		desc = "Logarithmic horizontal axis. "
	}
	chart := &view.LineChart{Title: title, Desc: desc + charts.DescribeSeries(lines), YLabel: c.yLabel, XLabel: c.xLabel,
		X: view.Scale{Log: true, Lo: xs[0], Hi: xs[len(xs)-1]}, XTicks: ticks, YUnit: c.yText, Linear: c.linear, Series: lines}
	data := view.Grid{Caption: title, Head: view.HeadCells("series", c.xLabel, c.yLabel)}
	for _, l := range lines {
		for _, p := range l.Points {
			data.Rows = append(data.Rows, []view.GridCell{view.NameCell(l.Name), view.NumberCell(c.xText(p.X)), view.NumberCell(c.yText(p.Y))})
		}
	}
	caption := "median of the samples; repeats as the median of theirs"
	return view.Figure{Title: title, Caption: caption, Chart: chart, Data: data}
}
