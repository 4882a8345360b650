package hol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Section shows what a bulk stream does to small probes on the same QP, and what the probes cost the stream.
func Section(set *reports.Set) view.Section {
	s := view.Section{ID: "hol", Title: "Head-of-line blocking",
		Intro: "Small probes, first alone, then under load of a bulk stream. Hollow is alone, filled is loaded; the line " +
			"between them is the price of waiting behind bulk data."}
	s.Figures = sizeFigures(set)
	for _, g := range places(set, true) {
		arms := armSeries(set, g.Samples)
		s.Figures = append(s.Figures, pairs(g.Key, arms), curves(g.Key, arms), bulkChart(g.Key, arms))
		s.Figures = append(s.Figures, costCharts(g.Key, arms)...)
	}
	return s
}

type place struct {
	probe, interval, gap int64 // of the probes
	depth                int
	bulk                 int64
	run                  string // of a scenario
}

func placeOf(r *reports.Result) place {
	h := Of(r)
	return place{probe: h.ProbeSizeBytes, interval: h.ProbeIntervalNs, gap: h.ProbeGapNs, depth: r.Depth,
		bulk: h.BulkSizeBytes}
}

// places are the samples of each place, or without sizes of all bulk sizes of one together.
func places(set *reports.Set, sizes bool) []*reports.Group[place] {
	return reports.GroupBy(set.Samples, func(s *reports.Measured) (p place, ok bool) {
		if Of(s.Result) == nil {
			return p, false
		}
		if p = placeOf(s.Result); !sizes {
			p.bulk = 0
		}
		return p, true
	})
}

func (p place) title(what string) string { return what + ", bulk of " + reports.SizeLabel(p.bulk) }

func (p place) describe() string { return "bulk of " + reports.SizeLabel(p.bulk) + ", " + p.manner() }

func (p place) manner() string {
	probes := "in a closed loop"
	switch {
	case p.interval != 0:
		probes = "every " + view.Number(float64(p.interval)/1000, -1) + " us"
	case p.gap != 0:
		probes = "one at a time, " + view.Number(float64(p.gap)/1000, -1) + " us apart at least"
	}
	return fmt.Sprintf("bulk depth %d, probes of %s %s, full round trip", p.depth, view.Plural(p.probe, "byte"), probes)
}

// armSeries has each stack in each variant. The first of a stack has its colour, the others colours that no stack has.
func armSeries(set *reports.Set, samples []*reports.Measured) (all []*reports.BySeries) {
	free := len(set.Order)
	arm := func(s *reports.Measured) (string, bool) { return Of(s.Result).arm(), true }
	several := len(reports.GroupBy(samples, arm)) > 1
	for _, b := range reports.Split(samples) {
		for i, g := range reports.GroupBy(b.Runs, arm) {
			one := &reports.BySeries{Series: b.Series, Short: b.Short, Slot: b.Slot, Runs: g.Samples}
			if i > 0 {
				one.Slot = free
				free++
			}
			if several {
				one.Series += ", " + view.Visible(g.Key)
				one.Short += " " + view.Visible(g.Key)
			}
			all = append(all, one)
		}
	}
	return all
}

func saturated(runs []*reports.Measured) bool {
	return slices.ContainsFunc(runs, func(s *reports.Measured) bool { return Of(s.Result).saturated() })
}

var pairRows = []string{"p50", "p99", "p99.9"}

func probesOf(b *reports.BySeries) (alone, loaded []*reports.Latency) {
	for _, r := range b.Runs {
		h := Of(r.Result)
		alone, loaded = append(alone, &h.ProbeAlone), append(loaded, &h.ProbeLoaded)
	}
	return alone, loaded
}

// median is that of a figure over repeats, 0 where they do not have it.
func median(runs []*reports.Measured, figure string) float64 {
	return reports.MedianOf(runs, func(s *reports.Measured) float64 { v, _ := s.Figure(figure); return v })
}

func pairs(k place, arms []*reports.BySeries) view.Figure {
	title := k.title("Probe latency")
	chart := &view.PairChart{Title: title, XLabel: "Probe latency, logarithmic", Unit: view.NsLabel,
		Legend: []view.LegendEntry{{Name: "alone", Slot: arms[0].Slot, Thin: true},
			{Name: "under load", Slot: arms[0].Slot}}}
	data := view.Grid{Caption: title, Head: view.HeadCells("series", "percentile", "alone", "loaded", "factor")}
	var words []string
	row := func(b *reports.BySeries, first bool, name string, alone, loaded float64) {
		text := view.Digits3(loaded/alone) + "x"
		if saturated(b.Runs) {
			text = "saturated"
		}
		before, behind := view.NsLabel(alone), view.NsLabel(loaded)
		chart.Bars = append(chart.Bars, view.Bar{Block: b.Short, Label: name, Slot: b.Slot, Value: alone, Other: loaded,
			Text: text, FirstOfKind: first,
			Tip: fmt.Sprintf("%s\n%s alone %s\nloaded %s (%s)", b.Series, name, before, behind, text)})
		data.Rows = append(data.Rows, []view.GridCell{view.NameCell(b.Series), view.NumberCell(name),
			view.NumberCell(before), view.NumberCell(behind), view.NumberCell(text)})
		words = append(words, fmt.Sprintf("%s %s: %s alone, %s loaded.", b.Series, name, before, behind))
	}
	for _, b := range arms {
		alone, loaded := probesOf(b)
		first := true
		of, behind := charts.PooledPercentiles(alone, pairRows...), charts.PooledPercentiles(loaded, pairRows...)
		for _, r := range pairRows {
			if of[r] > 0 && behind[r] > 0 {
				row(b, first, r, of[r], behind[r])
				first = false
			}
		}
		row(b, first, "max", median(b.Runs, "alone.max"), median(b.Runs, "loaded.max"))
	}
	chart.Desc = strings.Join(words, " ")
	return view.Figure{Title: title, Caption: k.describe(), Chart: chart, Data: data}
}

func curves(k place, arms []*reports.BySeries) view.Figure {
	var lines []view.Series
	for _, b := range arms {
		alone, loaded := probesOf(b)
		lines = append(lines, charts.PercentileCurve(b, " alone", true, alone),
			charts.PercentileCurve(b, " loaded", false, loaded))
	}
	return charts.PercentileFigure(k.title("Probe latency distribution"), k.describe(), lines)
}

func bulkChart(k place, arms []*reports.BySeries) view.Figure {
	title := k.title("Bulk throughput")
	chart := &view.BarChart{Title: title, XLabel: "Bandwidth [MiB/s]", Unit: view.Digits3,
		Legend: []view.LegendEntry{{Name: "alone", Slot: arms[0].Slot, Thin: true, Bar: true},
			{Name: "with probes", Slot: arms[0].Slot, Bar: true}}}
	data := view.Grid{Caption: title, Head: view.HeadCells("series", "alone", "loaded", "kept")}
	var words []string
	for _, b := range arms {
		alone, loaded := median(b.Runs, "alone.bw"), median(b.Runs, "loaded.bw")
		for i, v := range []float64{alone, loaded} {
			name := []string{"alone", "with probes"}[i]
			chart.Bars = append(chart.Bars, view.Bar{Block: b.Short, Slot: b.Slot, Value: v / (1 << 20), Thin: i == 0,
				FirstOfKind: i == 0, Text: view.Digits3(v / (1 << 20)),
				Tip: fmt.Sprintf("%s\n%s: %s", b.Series, name, view.BandwidthLabel(v))})
		}
		data.Rows = append(data.Rows, []view.GridCell{view.NameCell(b.Series),
			view.NumberCell(view.BandwidthLabel(alone)), view.NumberCell(view.BandwidthLabel(loaded)),
			view.NumberCell(view.PercentOf(loaded, alone))})
		words = append(words, fmt.Sprintf("%s: %s alone, %s with probes.", b.Series, view.BandwidthLabel(alone),
			view.BandwidthLabel(loaded)))
	}
	chart.Desc = strings.Join(words, " ")
	return view.Figure{Title: title, Caption: k.describe(), Chart: chart, Data: data}
}

// sizeFigures are percentiles of probes and costs of bulk by bulk size. sRDMA (Wang, Wang and Li, APNet'23) claims that
// the latency grows with it only where both share a queue.
func sizeFigures(set *reports.Set) (figures []view.Figure) {
	for _, g := range places(set, false) {
		sizes := bulkSizes(g.Samples)
		if len(sizes) < 2 {
			continue
		}
		arms := armSeries(set, g.Samples)
		caption := g.Key.manner() + "; thin lines are the 99th percentile"
		var probes, costs []view.Series
		for _, b := range arms {
			probes = append(probes, bySize(b, sizes, "p50"), bySize(b, sizes, "p99"))
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

func ofSize(b *reports.BySeries, size int64) []*reports.Measured {
	return slices.DeleteFunc(slices.Clone(b.Runs), func(s *reports.Measured) bool {
		return Of(s.Result).BulkSizeBytes != size
	})
}

// bySize is one line. What is saturated is not on it: it would be the prober's backlog, which grows with the window.
func bySize(b *reports.BySeries, sizes []int64, name string) view.Series {
	l := view.Series{Name: b.Series + ", " + name, Short: b.Short + " " + name, Slot: b.Slot, Thin: name == "p99"}
	gap, figure := false, "loaded."+name
	for _, n := range sizes {
		runs := ofSize(b, n)
		switch {
		case len(runs) == 0:
			continue
		case saturated(runs):
			gap = true
			continue
		case runs[0].Mark(figure) == "few":
			continue
		}
		y := median(runs, figure)
		tip := fmt.Sprintf("%s\n%s\n%s %s", l.Name, reports.SizeLabel(n), name, view.NsLabel(y))
		l.Points = append(l.Points, view.Point{X: float64(n), Y: y, Gap: gap, Tip: tip})
		gap = false
	}
	return l
}

// costs are seconds for a gigabyte of bulk, and in words those for an operation; 0 where they are not known.
func costs(runs []*reports.Measured) (gb float64, words string) {
	gb = median(runs, "cpu.gb") / 1e9
	return gb, fmt.Sprintf("%s s/GB\n%s an operation", view.Digits3(gb), view.NsLabel(median(runs, "cpu.op")))
}

func costBySize(b *reports.BySeries, sizes []int64) view.Series {
	l := view.Series{Name: b.Series, Short: b.Short, Slot: b.Slot}
	for _, n := range sizes {
		if gb, words := costs(ofSize(b, n)); gb > 0 {
			l.Points = append(l.Points, view.Point{X: float64(n), Y: gb,
				Tip: fmt.Sprintf("%s\n%s\n%s", b.Series, reports.SizeLabel(n), words)})
		}
	}
	return l
}

func costCharts(k place, arms []*reports.BySeries) []view.Figure {
	title := k.title("CPU of both sides under load")
	chart := &view.BarChart{Title: title, XLabel: "CPU [s/GB]", Unit: view.Digits3}
	data := view.Grid{Caption: title, Head: view.HeadCells("series", "CPU for a gigabyte of bulk",
		"CPU for an operation")}
	for _, b := range arms {
		gb, words := costs(b.Runs)
		if !(gb > 0) {
			continue
		}
		text := view.Digits3(gb)
		chart.Bars = append(chart.Bars, view.Bar{Block: b.Short, Slot: b.Slot, Value: gb, FirstOfKind: true, Text: text,
			Tip: b.Series + "\n" + words})
		data.Rows = append(data.Rows, []view.GridCell{view.NameCell(b.Series), view.NumberCell(text + " s"),
			view.NumberCell(view.NsLabel(median(b.Runs, "cpu.op")))})
		chart.Desc += fmt.Sprintf("%s: %s s/GB. ", b.Series, text)
	}
	if len(chart.Bars) == 0 {
		return nil
	}
	return []view.Figure{{Title: title, Caption: k.describe(), Chart: chart, Data: data}}
}
