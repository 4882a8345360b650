package reports

import (
	"fmt"
	"strings"
)

// seriesSection shows how each window went: a figure over the whole of it hides
// a pause, a warm-up or a drift. Each repeat is a line of its own.
func (c *charts) seriesSection(set *sampleSet) section {
	s := section{ID: "time", Title: "Over time",
		Intro: "Each interval of the window by itself; a gap is an interval in which nothing ended. Latency shows the median as a strong line and the 99th percentile as a thin one; of a head-of-line result they are the probes beside the bulk."}
	for _, g := range groupBy(set.samples, func(s *sample) (condition, bool) {
		return s.condition(), s.Series != nil && len(s.Series.Points) > 1
	}) {
		for _, size := range spread(sizesOf(g.samples), curvesShown) {
			in := ofSize(g.samples, size)
			title := fmt.Sprintf("%s, %s", g.key.title(), sizeLabel(size))
			if g.key.rate > 0 {
				title += ", " + rateLabel(g.key.rate)
			}
			s.Figures = append(s.Figures, c.seriesFigure(title, g.key.describe(), in))
		}
	}
	return s
}

func (c *charts) seriesFigure(title, caption string, in []*sample) figure {
	latency := false
	end := 0.0
	for _, s := range in {
		for _, p := range s.Series.Points {
			latency = latency || p.P50 > 0
			end = max(end, float64(p.OffsetNs+s.Series.IntervalNs)/1e9)
		}
	}
	data := htmlTable{Caption: title + " over time", Head: headCells("series", "from", "operations", "p50", "p99", "max")}
	var lines []series
	for _, s := range in {
		short := s.short + strings.TrimPrefix(s.name(), s.series)
		median := series{name: s.name(), short: short, slot: s.slot}
		tail := series{name: s.name() + " p99", short: short + " p99", slot: s.slot, thin: true}
		for _, p := range s.Series.Points {
			// An interval stands at its middle.
			x := (float64(p.OffsetNs) + float64(s.Series.IntervalNs)/2) / 1e9
			from := digits3(float64(p.OffsetNs)/1e9) + " s"
			if latency {
				median.points = append(median.points, point{x: x, y: p.P50, tip: fmt.Sprintf("%s\nfrom %s\np50 %s", s.name(), from, nsLabel(p.P50))})
				tail.points = append(tail.points, point{x: x, y: p.P99, tip: fmt.Sprintf("%s\nfrom %s\np99 %s, max %s", s.name(), from, nsLabel(p.P99), nsLabel(p.Max))})
			} else if s.Series.IntervalNs > 0 {
				rate := float64(p.Operations) / (float64(s.Series.IntervalNs) / 1e9)
				median.points = append(median.points, point{x: x, y: rate, tip: fmt.Sprintf("%s\nfrom %s\n%s", s.name(), from, rateLabel(rate))})
			}
			data.Rows = append(data.Rows, []htmlCell{nameCell(s.name()), numberCell(from), numberCell(integer(p.Operations)),
				numberCell(nsLabel(p.P50)), numberCell(nsLabel(p.P99)), numberCell(nsLabel(p.Max))})
		}
		lines = append(lines, median)
		if latency {
			lines = append(lines, tail)
		}
	}
	ticks, top := linearTicks(end, digits3)
	chart := &lineChart{id: c.id(), title: "Over time: " + title, yLabel: "Latency", yUnit: nsLabel, xLabel: "Time in the window [s]",
		desc: seriesWords(lines), x: scale{lo: 0, hi: top}, xTicks: ticks, series: lines}
	if !latency {
		chart.yLabel, chart.yUnit = "Operations a second", digits3
	}
	return figure{title, caption, chart.render(), data}
}

// seriesWords gives a long series as its range: a list of every interval stands
// in the table.
func seriesWords(lines []series) string {
	var out []string
	for _, l := range lines {
		out = append(out, fmt.Sprintf("%s: %s.", l.name, plural(int64(len(l.points)), "interval")))
	}
	return strings.Join(out, " ") + " The figures stand in the table below."
}
