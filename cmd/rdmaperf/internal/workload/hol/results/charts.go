package results

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Section shows what a bulk stream does to small probes on the same QP, and
// what the probes cost the stream.
func Section(set *reports.Set) view.Section {
	s := view.Section{ID: "hol", Title: "Head-of-line blocking",
		Intro: "Small probes, first alone, then under load of a bulk stream. Hollow is alone, filled is loaded; the line " +
			"between them is the price of waiting behind bulk data."}
	s.Figures = sizeFigures(set)
	for _, g := range places(set) {
		arms := armSeries(set, g.Samples)
		s.Figures = append(s.Figures, pairs(g.Key, arms), curves(g.Key, arms), bulkChart(g.Key, arms))
		s.Figures = append(s.Figures, costCharts(g.Key, arms)...)
	}
	return s
}

// place is what stacks and arms in one figure share.
type place struct {
	share
	depth int
	bulk  int64
}

func (p place) title(what string) string { return what + ", bulk of " + reports.SizeLabel(p.bulk) }

// describe is the place in words.
func (p place) describe() string {
	return fmt.Sprintf("bulk of %s, bulk depth %d, %s, full round trip", reports.SizeLabel(p.bulk), p.depth, p.share)
}

func placeOf(r *reports.Result) place {
	h := Of(r)
	return place{shareOf(r), r.Depth, h.BulkSizeBytes}
}

func places(set *reports.Set) []*reports.Group[place] {
	return reports.GroupBy(set.Samples, func(s *reports.Measured) (place, bool) {
		if Of(s.Result) == nil {
			return place{}, false
		}
		return placeOf(s.Result), true
	})
}

// armSeries are the samples of a figure, each stack in each variant a series of its own. The first of a stack has its
// colour, and the others have colours that no stack has.
func armSeries(set *reports.Set, samples []*reports.Measured) (all []*reports.BySeries) {
	free := len(set.Order)
	several := len(reports.GroupBy(samples, func(s *reports.Measured) (string, bool) {
		return Of(s.Result).arm(), true
	})) > 1
	for _, b := range reports.Split(samples) {
		for i, g := range reports.GroupBy(b.Runs, func(s *reports.Measured) (string, bool) {
			return Of(s.Result).arm(), true
		}) {
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

// saturatedRun tells that a repeat of a series is saturated.
func saturatedRun(b *reports.BySeries) bool {
	return slices.ContainsFunc(b.Runs, func(s *reports.Measured) bool { return Of(s.Result).saturated() })
}

// pairRows are the percentiles of the pair chart.
var pairRows = []string{"p50", "p99", "p99.9"}

// probesOf are the latencies of probes in the slices of a series.
func probesOf(b *reports.BySeries) (alone, loaded []*reports.Latency) {
	for _, r := range b.Runs {
		h := Of(r.Result)
		alone, loaded = append(alone, &h.ProbeAlone), append(loaded, &h.ProbeLoaded)
	}
	return alone, loaded
}

func median(ls []*reports.Latency, value func(*reports.Latency) float64) float64 {
	var all []float64
	for _, l := range ls {
		all = append(all, value(l))
	}
	return reports.Median(all)
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
		if saturatedRun(b) {
			text = "saturated"
		}
		chart.Bars = append(chart.Bars, view.Bar{Block: b.Short, Label: name, Slot: b.Slot, Value: alone, Other: loaded,
			Text:        text,
			FirstOfKind: first, Tip: fmt.Sprintf("%s\n%s alone %s\nloaded %s (%s)", b.Series, name, view.NsLabel(alone),
				view.NsLabel(loaded), text)})
		data.Rows = append(data.Rows, []view.GridCell{view.NameCell(b.Series), view.NumberCell(name),
			view.NumberCell(view.NsLabel(alone)),
			view.NumberCell(view.NsLabel(loaded)), view.NumberCell(text)})
		words = append(words, fmt.Sprintf("%s %s: %s alone, %s loaded.", b.Series, name, view.NsLabel(alone),
			view.NsLabel(loaded)))
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
		row(b, first, "max", median(alone, func(l *reports.Latency) float64 { return l.Max }),
			median(loaded, func(l *reports.Latency) float64 { return l.Max }))
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
		alone := reports.MedianOf(b.Runs, func(s *reports.Measured) float64 {
			return Of(s.Result).BulkAloneBytesPerSecond
		})
		loaded := reports.MedianOf(b.Runs, func(s *reports.Measured) float64 {
			return Of(s.Result).BulkLoadedBytesPerSecond
		})
		for i, v := range []float64{alone, loaded} {
			name := []string{"alone", "with probes"}[i]
			chart.Bars = append(chart.Bars, view.Bar{Block: b.Short, Slot: b.Slot, Value: v / (1 << 20), Thin: i == 0,
				FirstOfKind: i == 0,
				Text:        view.Digits3(v / (1 << 20)), Tip: fmt.Sprintf("%s\n%s: %s", b.Series, name,
					view.BandwidthLabel(v))})
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
