package charts

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// SeriesSection shows how each window went, a line for each repeat.
func SeriesSection(set *reports.Set) view.Section {
	s := view.Section{ID: "time", Title: "Over time",
		Intro: "Each interval of the window by itself; a gap is an interval in which nothing ended. Latency shows " +
			"the median as a strong line and the 99th percentile as a thin one; of a head-of-line result they are " +
			"the probes under load."}
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
		return s.Condition(), s.Series != nil && len(s.Series.Points) > 1
	}) {
		for _, size := range spread(reports.SizesOf(g.Samples), curvesShown) {
			in := OfSize(g.Samples, size)
			title := fmt.Sprintf("%s, %s", g.Key.Title(), reports.SizeLabel(size))
			if g.Key.Rate > 0 {
				title += ", " + view.RateLabel(g.Key.Rate)
			}
			s.Figures = append(s.Figures, seriesFigure(title, g.Key.Describe(), in))
		}
	}
	return s
}

func seriesFigure(title, caption string, in []*reports.Measured) view.Figure {
	if len(in) > view.Slots { // a line of each stack before any second one
		in = slices.Clone(in)
		slices.SortStableFunc(in, func(a, b *reports.Measured) int { return a.Repeat - b.Repeat })
	}
	latency := false
	end := 0.0
	for _, s := range in {
		for _, p := range s.Series.Points {
			latency = latency || p.P50 > 0
			end = max(end, float64(p.OffsetNs+s.Series.IntervalNs)/1e9)
		}
	}
	data := view.Grid{Caption: title + " over time", Head: view.HeadCells("series", "from", "operations", "p50", "p99",
		"max")}
	var lines []view.Series
	for _, s := range in {
		short := s.Short + strings.TrimPrefix(s.Name(), s.SeriesName)
		median := view.Series{Name: s.Name(), Short: short, Slot: s.Slot}
		tail := view.Series{Name: s.Name() + " p99", Short: short + " p99", Slot: s.Slot, Thin: true}
		for _, p := range s.Series.Points {
			// An interval stands at its middle.
			x := (float64(p.OffsetNs) + float64(s.Series.IntervalNs)/2) / 1e9
			from := view.Digits3(float64(p.OffsetNs)/1e9) + " s"
			add := func(line *view.Series, y float64, tip string) {
				line.Points = append(line.Points, view.Point{X: x, Y: y, Tip: s.Name() + "\nfrom " + from + "\n" + tip})
			}
			if latency {
				add(&median, p.P50, "p50 "+view.NsLabel(p.P50))
				add(&tail, p.P99, "p99 "+view.NsLabel(p.P99)+", max "+view.NsLabel(p.Max))
			} else if s.Series.IntervalNs > 0 {
				rate := float64(p.Operations) / (float64(s.Series.IntervalNs) / 1e9)
				add(&median, rate, view.RateLabel(rate))
			}
			data.Add([]view.GridCell{view.NameCell(s.Name())}, view.NumberCells(from, view.Integer(p.Operations),
				view.NsLabel(p.P50), view.NsLabel(p.P99), view.NsLabel(p.Max)))
		}
		lines = append(lines, median)
		if latency {
			lines = append(lines, tail)
		}
	}
	ticks, top := view.LinearTicks(end, view.Digits3)
	chart := &view.LineChart{Title: "Over time: " + title, YLabel: "Latency", YUnit: view.NsLabel,
		XLabel: "Time in the window [s]",
		Desc:   seriesWords(lines), X: view.Scale{Lo: 0, Hi: top}, XTicks: ticks, Series: lines}
	if !latency {
		chart.YLabel, chart.YUnit = "Operations a second", view.Digits3
	}
	return view.Figure{Title: title, Caption: caption, Chart: chart, Data: data}
}

func seriesWords(lines []view.Series) string {
	return strings.Join(view.Each(lines, func(l view.Series) string {
		return fmt.Sprintf("%s: %s.", l.Name, view.Plural(int64(len(l.Points)), "interval"))
	}), " ") + " The table below has the figures."
}
