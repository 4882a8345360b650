package mixed

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// place is what the bars or lines of one chart share.
type place struct {
	reports.Load
	rate   float64
	blocks string
}

// section is the rate and the latency of each direction, and of several mixes the curve
// against the part of reads.
func section(set *reports.Set) view.Section {
	s := view.Section{ID: Name, Title: "Reads and writes",
		Intro: "Reads and writes of several sizes at random places. On stacks whose writes complete when they were handed over, the latency of a write is no round trip, unless a read behind it ends it."}
	for _, g := range reports.GroupBy(set.Samples, func(x *reports.Measured) (place, bool) {
		d := Of(x.Result)
		if d == nil {
			return place{}, false
		}
		return place{reports.LoadOf(x.Result), x.Rate, view.Visible(d.Blocks)}, true
	}) {
		caption := g.Key.Load.Conditions()
		if g.Key.rate > 0 {
			caption += ", " + view.RateLabel(g.Key.rate) + " offered"
		}
		mixes := reports.GroupBy(g.Samples, func(x *reports.Measured) (int, bool) { return Of(x.Result).ReadPercent, true })
		slices.SortStableFunc(mixes, func(a, b *reports.Group[int]) int { return cmp.Compare(a.Key, b.Key) })
		for _, m := range mixes {
			title := strconv.Itoa(m.Key) + " % reads of " + g.Key.blocks
			s.Figures = append(s.Figures, rateBars("Operations a second, "+title, caption, m.Samples), latencyBars("Latency, "+title, caption, m.Samples))
		}
		if len(mixes) > 1 {
			s.Figures = append(s.Figures,
				curve("Operations a second by mix, "+g.Key.blocks, caption, "Operations a second", view.RateLabel, true, mixes, []line{{"", both}}),
				curve("p99 by mix, "+g.Key.blocks, caption, "Latency, p99", view.NsLabel, false, mixes, []line{{" reads", p99(reads)}, {" writes", p99(writes)}}))
		}
	}
	return s
}

func both(x *reports.Measured) (float64, bool) {
	d := Of(x.Result)
	return d.Reads.OperationsPerSecond + d.Writes.OperationsPerSecond, true
}

func p99(side int) func(x *reports.Measured) (float64, bool) {
	return func(x *reports.Measured) (float64, bool) {
		if l := latencyOf(side)(x.Result); l != nil {
			return l.P99, true
		}
		return 0, false
	}
}

func legend(samples []*reports.Measured) (entries []view.LegendEntry) {
	for _, b := range reports.Split(samples) {
		entries = append(entries, view.LegendEntry{Name: b.Short, Slot: b.Slot, Bar: true})
	}
	return entries
}

// rateBars has a bar for each direction of each series.
func rateBars(title, caption string, samples []*reports.Measured) view.Figure {
	chart := &view.BarChart{Title: title, XLabel: "Operations a second", Unit: view.Digits3, Legend: legend(samples)}
	data := view.Grid{Caption: title, Head: view.HeadCells("direction", "series", "operations a second", "MiB/s", "% of all")}
	var words []string
	for i, s := range sides {
		for k, b := range reports.Split(samples) {
			of := func(figure func(d *Direction) float64) float64 {
				return reports.MedianOf(b.Runs, func(x *reports.Measured) float64 { return figure(s.of(Of(x.Result))) })
			}
			rate, bw := of(func(d *Direction) float64 { return d.OperationsPerSecond }), of(func(d *Direction) float64 { return d.BytesPerSecond })
			part := reports.MedianOf(b.Runs, func(x *reports.Measured) float64 { return Of(x.Result).shareOf(i) })
			chart.Bars = append(chart.Bars, view.Bar{Block: view.Capital(s.name), Slot: b.Slot, Value: rate, Text: view.Digits3(rate), FirstOfKind: k == 0,
				Tip: b.Series + "\n" + s.name + "\n" + view.RateLabel(rate) + "\n" + view.BandwidthLabel(bw)})
			words = append(words, b.Series+", "+s.name+": "+view.RateLabel(rate)+".")
			data.Rows = append(data.Rows, []view.GridCell{view.NameCell(s.name), view.TextCell(b.Series), view.NumberCell(view.Number(rate, 0)), view.NumberCell(view.Bandwidth(bw, false)), view.NumberCell(view.Number(part, 2))})
		}
	}
	chart.Desc = view.Joined(words)
	return view.Figure{Title: title, Caption: caption, Chart: chart, Data: data}
}

// latencyBars has the median and, hollow, p99 of each direction.
func latencyBars(title, caption string, samples []*reports.Measured) view.Figure {
	chart := &view.BarChart{Title: title, XLabel: "p50 [µs]; hollow: p99", Unit: view.Digits3, Legend: legend(samples)}
	data := view.Grid{Caption: title, Head: view.HeadCells("direction", "series", "p50", "p99")}
	var words []string
	for i, s := range sides {
		first := true
		for _, b := range reports.Split(samples) {
			runs := slices.DeleteFunc(slices.Clone(b.Runs), func(x *reports.Measured) bool { return latencyOf(i)(x.Result) == nil })
			if len(runs) == 0 {
				continue
			}
			var values [2]float64
			few := [2]bool{}
			for k, n := range []int{0, 2} { // p50, p99
				values[k] = reports.MedianOf(runs, func(x *reports.Measured) float64 { return latencyOf(i)(x.Result).Percentiles()[n].Ns })
				few[k] = latencyOf(i)(runs[0].Result).Percentiles()[n].TooFew
				chart.Bars = append(chart.Bars, view.Bar{Block: view.Capital(s.name), Slot: b.Slot, Value: values[k] / 1000, Thin: k == 1, Text: view.Digits3(values[k] / 1000), Few: few[k], FirstOfKind: first,
					Tip: b.Series + "\n" + s.name + ", " + []string{"p50 ", "p99 "}[k] + view.NsLabel(values[k])})
				first = false
			}
			words = append(words, b.Series+", "+s.name+": p50 "+view.NsLabel(values[0])+", p99 "+view.NsLabel(values[1])+".")
			data.Rows = append(data.Rows, []view.GridCell{view.NameCell(s.name), view.TextCell(b.Series), view.GridCell{Text: view.NsLabel(values[0]), Class: "n", Mark: few[0]}, view.GridCell{Text: view.NsLabel(values[1]), Class: "n", Mark: few[1]}})
		}
	}
	chart.Desc = view.Joined(words)
	return view.Figure{Title: title, Caption: caption, Chart: chart, Data: data}
}

// line is one of a series.
type line struct {
	name string
	of   func(x *reports.Measured) (float64, bool)
}

// curve is a figure against the part of reads.
func curve(title, caption, label string, text func(float64) string, linear bool, mixes []*reports.Group[int], of []line) view.Figure {
	var all []*reports.Measured
	var ticks []view.Tick
	for _, m := range mixes {
		all = append(all, m.Samples...)
		ticks = append(ticks, view.Tick{At: float64(m.Key), Label: strconv.Itoa(m.Key)})
	}
	data := view.Grid{Caption: title, Head: view.HeadCells("series", "reads %", label)}
	var lines []view.Series
	for _, b := range reports.Split(all) {
		for i, o := range of {
			l := view.Series{Name: b.Series + o.name, Short: b.Short + o.name, Slot: b.Slot, Thin: i > 0}
			for _, m := range mixes {
				runs := slices.DeleteFunc(slices.Clone(b.Runs), func(x *reports.Measured) bool {
					_, ok := o.of(x)
					return !ok || Of(x.Result).ReadPercent != m.Key
				})
				if len(runs) == 0 {
					continue
				}
				y := reports.MedianOf(runs, func(x *reports.Measured) float64 { v, _ := o.of(x); return v })
				l.Points = append(l.Points, view.Point{X: float64(m.Key), Y: y, Tip: l.Name + "\n" + strconv.Itoa(m.Key) + " % reads\n" + text(y)})
				data.Rows = append(data.Rows, []view.GridCell{view.NameCell(l.Name), view.NumberCell(strconv.Itoa(m.Key)), view.NumberCell(text(y))})
			}
			if len(l.Points) > 0 {
				lines = append(lines, l)
			}
		}
	}
	chart := &view.LineChart{Title: title, Desc: charts.DescribeSeries(lines), YLabel: label, XLabel: "Reads [%]",
		X: view.Scale{Lo: ticks[0].At, Hi: ticks[len(ticks)-1].At}, XTicks: ticks, YUnit: text, Linear: linear, Series: lines}
	return view.Figure{Title: title, Caption: caption, Chart: chart, Data: data}
}
