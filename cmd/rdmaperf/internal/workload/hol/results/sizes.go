package results

import (
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// The claim of sRDMA (Wang, Wang and Li, APNet'23) is a figure: the latency of a small
// urgent message against the size of the bulk messages beside it is a line that grows
// where they share a queue, and one that does not where they are scheduled.

// sizeFigures are the probe's percentiles, and what the bulk costs, by the bulk size, of
// every stack in every arm; none for a single size.
func sizeFigures(set *reports.Set) (figures []view.Figure) {
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (place, bool) {
		if Of(s.Result) == nil {
			return place{}, false
		}
		p := placeOf(s.Result)
		p.bulk = 0
		return p, true
	}) {
		sizes := bulkSizes(g.Samples)
		if len(sizes) < 2 {
			continue
		}
		arms := armSeries(set, g.Samples)
		caption := fmt.Sprintf("bulk depth %d, %s, full round trip; thin lines are the 99th percentile", g.Key.depth,
			g.Key.share)
		var probes, costs []view.Series
		for _, b := range arms {
			probes = append(probes, bySize(b, sizes, "p50", view.NsLabel, false),
				bySize(b, sizes, "p99", view.NsLabel, true))
			if line := costBySize(b, sizes); len(line.Points) > 0 {
				costs = append(costs, line)
			}
		}
		figures = append(figures, sizeFigure("Probe latency under load, by bulk size", "Probe latency, p50 and p99",
			caption, view.NsLabel, sizes, probes))
		if len(costs) > 0 {
			figures = append(figures, sizeFigure("CPU for a gigabyte of bulk, by bulk size", "CPU of both sides [s/GB]",
				caption, view.Digits3, sizes, costs))
		}
	}
	return figures
}

func sizeFigure(title, y, caption string, unit func(float64) string, sizes []int64, lines []view.Series) view.Figure {
	chart := &view.LineChart{
		Title: title, Desc: "Logarithmic axes. " + charts.DescribeSeries(lines), YLabel: y, XLabel: "Bulk size",
		X: charts.SizeScale(sizes), XTicks: charts.SizeTicks(sizes), YUnit: unit, Series: lines}
	return view.Figure{Title: title, Caption: caption, Chart: chart, Data: charts.PointTable(title, "bulk size",
		"figures", lines)}
}

func bulkSizes(samples []*reports.Measured) (sizes []int64) {
	for _, s := range samples {
		sizes = append(sizes, Of(s.Result).BulkSizeBytes)
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// ofSize are the runs of a series with a bulk size.
func ofSize(b *reports.BySeries, size int64) *reports.BySeries {
	one := *b
	one.Runs = slices.DeleteFunc(slices.Clone(b.Runs), func(s *reports.Measured) bool {
		return Of(s.Result).BulkSizeBytes != size
	})
	return &one
}

// bySize is one line. What is saturated has no place on it: it would be the prober's own
// backlog, which grows with the window. It stands in the table under the figure.
func bySize(b *reports.BySeries, sizes []int64, name string, label func(float64) string,
	thin bool) view.Series {
	l := view.Series{Name: b.Series + ", " + name, Short: b.Short + " " + name, Slot: b.Slot, Thin: thin}
	gap := false
	for _, n := range sizes {
		at := ofSize(b, n)
		if len(at.Runs) == 0 {
			continue
		}
		if saturatedRun(at) {
			gap = true
			continue
		}
		figure := "loaded." + name
		if at.Runs[0].Mark(figure) == "few" {
			continue
		}
		y := reports.MedianOf(at.Runs, func(s *reports.Measured) float64 { v, _ := s.Figure(figure); return v })
		tip := fmt.Sprintf("%s\n%s\n%s %s", l.Name, reports.SizeLabel(n), name, label(y))
		l.Points = append(l.Points, view.Point{X: float64(n), Y: y, Gap: gap, Tip: tip})
		gap = false
	}
	return l
}

// costBySize is what a gigabyte of bulk costs a series by its size.
func costBySize(b *reports.BySeries, sizes []int64) view.Series {
	l := view.Series{Name: b.Series, Short: b.Short, Slot: b.Slot}
	for _, n := range sizes {
		at := ofSize(b, n)
		if len(at.Runs) == 0 {
			continue
		}
		gb := reports.MedianOf(at.Runs, func(s *reports.Measured) float64 { return cpuPerGB(s.Result) })
		op := reports.MedianOf(at.Runs, func(s *reports.Measured) float64 { return cpuPerOp(s.Result) })
		if gb > 0 {
			l.Points = append(l.Points, view.Point{X: float64(n), Y: gb,
				Tip: fmt.Sprintf("%s\n%s\n%s s/GB\n%s an operation", b.Series, reports.SizeLabel(n), view.Digits3(gb),
					view.NsLabel(op*1e9))})
		}
	}
	return l
}

// costCharts are the CPU figures of one place, a bar for each stack in each arm.
func costCharts(k place, arms []*reports.BySeries) []view.Figure {
	title := k.title("CPU of both sides under load")
	chart := &view.BarChart{Title: title, XLabel: "CPU [s/GB]", Unit: view.Digits3}
	data := view.Grid{Caption: title, Head: view.HeadCells("series", "CPU for a gigabyte of bulk",
		"CPU for an operation")}
	for _, b := range arms {
		gb := reports.MedianOf(b.Runs, func(s *reports.Measured) float64 { return cpuPerGB(s.Result) })
		op := reports.MedianOf(b.Runs, func(s *reports.Measured) float64 { return cpuPerOp(s.Result) })
		if !(gb > 0) {
			continue
		}
		text := view.Digits3(gb)
		chart.Bars = append(chart.Bars, view.Bar{Block: b.Short, Slot: b.Slot, Value: gb, FirstOfKind: true, Text: text,
			Tip: fmt.Sprintf("%s\n%s s/GB\n%s an operation", b.Series, text, view.NsLabel(op*1e9))})
		data.Rows = append(data.Rows, []view.GridCell{view.NameCell(b.Series), view.NumberCell(text + " s"),
			view.NumberCell(view.NsLabel(op * 1e9))})
		chart.Desc += fmt.Sprintf("%s: %s s/GB. ", b.Series, text)
	}
	if len(chart.Bars) == 0 {
		return nil
	}
	return []view.Figure{{Title: title, Caption: k.describe(), Chart: chart, Data: data}}
}
