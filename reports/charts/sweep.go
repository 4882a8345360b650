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

// sweep is what a chart has on its x axis.
type sweep struct {
	name, label string
	view.Scale
	ticks []view.Tick
	x     func(s *reports.Measured) float64
	text  func(s *reports.Measured) string // x in a hover text
}

// measure is what a chart has on its y axis; point is the median of repeats.
type measure struct {
	label string
	unit  func(float64) string
	point func(repeats []*reports.Measured) view.Point
}

var (
	latencies = measure{"Latency, median to p99", view.NsLabel, func(repeats []*reports.Measured) view.Point {
		first := repeats[0]
		p := view.Point{Few: first.Latency.Percentiles()[2].TooFew,
			Y:    reports.MedianOf(repeats, func(s *reports.Measured) float64 { return s.Latency.P50 }),
			High: reports.MedianOf(repeats, func(s *reports.Measured) float64 { return s.Latency.P99 })}
		if p.Tip = "p50 " + view.NsLabel(p.Y); !p.Few {
			p.Tip += "\np99 " + view.NsLabel(p.High)
		}
		if first.Rate > 0 && first.Throughput != nil {
			p.Tip += "\nachieved " + view.RateLabel(first.Throughput.OperationsPerSecond)
		}
		return p
	}}
	bandwidths = measure{"Bandwidth [MiB/s]", view.Digits3, func(repeats []*reports.Measured) view.Point {
		bw := reports.MedianOf(repeats, func(s *reports.Measured) float64 { return s.Throughput.BytesPerSecond })
		ops := reports.MedianOf(repeats, func(s *reports.Measured) float64 { return s.Throughput.OperationsPerSecond })
		return view.Point{Y: bw / (1 << 20), Tip: view.BandwidthLabel(bw) + "\n" + view.RateLabel(ops)}
	}}
)

func (x *sweep) line(b *reports.BySeries, y measure) view.Series {
	line := view.Series{Name: b.Series, Short: b.Short, Slot: b.Slot}
	for _, at := range reports.GroupBy(b.Runs, func(s *reports.Measured) (float64, bool) { return x.x(s), true }) {
		p := y.point(at.Samples)
		p.X, p.Tip = at.Key, fmt.Sprintf("%s\n%s\n%s", b.Series, x.text(at.Samples[0]), p.Tip)
		line.Points = append(line.Points, p)
	}
	slices.SortStableFunc(line.Points, func(p, q view.Point) int { return cmp.Compare(p.X, q.X) })
	return line
}

func (x *sweep) lines(samples []*reports.Measured, y measure) []view.Series {
	return view.Each(reports.Split(samples), func(b *reports.BySeries) view.Series { return x.line(b, y) })
}

func (x *sweep) figure(what, title, caption string, y measure, lines []view.Series) view.Figure {
	return view.Figure{Title: title, Caption: caption, Data: PointTable(title, x.name, strings.ToLower(what), lines),
		Chart: &view.LineChart{Title: what + " by " + x.name + ": " + title,
			Desc:   "Logarithmic axes. " + DescribeSeries(lines),
			YLabel: y.label, YUnit: y.unit, XLabel: x.label, X: x.Scale, XTicks: x.ticks, Series: lines}}
}

func bySize(samples []*reports.Measured) *sweep {
	sizes := reports.SizesOf(samples)
	return &sweep{"size", "Message size", SizeScale(sizes), SizeTicks(sizes),
		func(s *reports.Measured) float64 { return float64(max(s.SizeBytes, 1)) },
		func(s *reports.Measured) string { return reports.SizeLabel(s.SizeBytes) }}
}

// SizeScale is an axis over sizes, which rise.
func SizeScale(sizes []int64) view.Scale {
	return view.Scale{Log: true, Lo: float64(max(sizes[0], 1)), Hi: float64(max(sizes[len(sizes)-1], 1))}
}

// SizeTicks are the labels of such an axis.
func SizeTicks(sizes []int64) []view.Tick {
	return view.Each(spread(sizes, 7), func(n int64) view.Tick {
		return view.Tick{At: float64(max(n, 1)), Label: reports.SizeLabel(n)}
	})
}

// ThroughputLine joins the bandwidths of one series along the sizes.
func ThroughputLine(b *reports.BySeries) view.Series { return bySize(b.Runs).line(b, bandwidths) }

func timed(s *reports.Measured) bool { return s.Latency != nil && s.Latency.Count > 0 }

// SizeSection is latency against message size.
func SizeSection(set *reports.Set) view.Section {
	s := view.Section{ID: "sizes", Title: "Latency by message size",
		Intro: "The marker is the median; the whisker above it reaches the 99th percentile."}
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
		return s.Condition(), timed(s)
	}) {
		if len(reports.SizesOf(g.Samples)) > 1 {
			x := bySize(g.Samples)
			s.Figures = append(s.Figures, x.figure("Latency", view.Capital(g.Key.What()), g.Key.Describe(), latencies,
				x.lines(g.Samples, latencies)))
		}
	}
	return s
}

// ThroughputSection is bandwidth against message size, or bars for one size.
func ThroughputSection(set *reports.Set) view.Section {
	s := view.Section{ID: "throughput", Title: "Throughput",
		Intro: "Payload over the whole window; MiB/s is 2²⁰ bytes a second."}
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
		return s.Condition(), s.Streamed() && s.Rate == 0
	}) {
		x, title := bySize(g.Samples), view.Capital(g.Key.What())
		lines := x.lines(g.Samples, bandwidths)
		if sizes := reports.SizesOf(g.Samples); len(sizes) > 1 {
			s.Figures = append(s.Figures, x.figure("Throughput", title, g.Key.Describe(), bandwidths, lines))
		} else {
			title += ", " + reports.SizeLabel(sizes[0])
			bars := &view.BarChart{Title: "Throughput: " + title, Desc: DescribeSeries(lines),
				XLabel: bandwidths.label, Unit: bandwidths.unit}
			for _, l := range lines {
				p := l.Points[0]
				bars.Bars = append(bars.Bars, view.Bar{Block: l.Short, Slot: l.Slot, Value: p.Y,
					Text: view.Digits3(p.Y), Tip: p.Tip, FirstOfKind: true})
			}
			s.Figures = append(s.Figures, view.Figure{Title: title, Caption: g.Key.Describe(), Chart: bars,
				Data: PointTable(title, x.name, "throughput", lines)})
		}
	}
	return s
}

// RateSection is latency under load: an open loop at several rates.
func RateSection(set *reports.Set) view.Section {
	s := view.Section{ID: "load", Title: "Latency under load",
		Intro: "Open loop: operations begin when they are due, and waiting counts. The marker is the median; the " +
			"whisker reaches the 99th percentile."}
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.At, bool) {
		at := s.At()
		at.Rate = 0 // it is on the axis
		return at, s.Rate > 0 && timed(s)
	}) {
		rates := reports.Distinct(g.Samples, func(s *reports.Measured) float64 { return s.Rate })
		if len(rates) < 2 {
			continue
		}
		x := &sweep{"offered rate", "Offered rate [op/s]", view.Scale{Log: true, Lo: rates[0], Hi: rates[len(rates)-1]},
			view.Each(rates, func(r float64) view.Tick {
				return view.Tick{At: r, Label: strings.TrimSuffix(view.RateLabel(r), " op/s")}
			}),
			func(s *reports.Measured) float64 { return s.Rate },
			func(s *reports.Measured) string { return view.RateLabel(s.Rate) + " offered" }}
		title := fmt.Sprintf("%s, %s", view.Capital(g.Key.What()), reports.SizeLabel(g.Key.Size))
		s.Figures = append(s.Figures, x.figure("Latency", title, g.Key.Conditions(), latencies,
			x.lines(g.Samples, latencies)))
	}
	return s
}

func connectionCounts(samples []*reports.Measured) []int {
	return reports.Distinct(samples, func(s *reports.Measured) int { return s.QPs })
}

// SweepSection is latency and throughput against the number of connections.
func SweepSection(set *reports.Set) view.Section {
	s := view.Section{ID: "connections", Title: "Connections",
		Intro: "The same work on more and more connections. The marker is the median; the whisker of a latency " +
			"reaches the 99th percentile."}
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.At, bool) {
		at := s.At()
		at.Load = at.AcrossQPs()
		return at, true
	}) {
		counts := connectionCounts(g.Samples)
		if len(counts) < 2 {
			continue
		}
		x := &sweep{"connections", view.Capital(g.Key.Connections()) + "s",
			view.Scale{Log: true, Lo: float64(counts[0]), Hi: float64(counts[len(counts)-1])},
			view.Each(spread(counts, 8), func(n int) view.Tick {
				return view.Tick{At: float64(n), Label: strconv.Itoa(n)}
			}),
			func(s *reports.Measured) float64 { return float64(s.QPs) },
			func(s *reports.Measured) string { return view.Plural(int64(s.QPs), g.Key.Connections()) }}
		title, caption := fmt.Sprintf("%s, %s", view.Capital(g.Key.What()), reports.SizeLabel(g.Key.Size)),
			g.Key.Conditions()+view.When(g.Key.Rate > 0, ", "+view.RateLabel(g.Key.Rate)+" offered")
		add := func(what string, y measure, is func(*reports.Measured) bool) {
			lines := x.lines(view.Only(g.Samples, is), y)
			if len(lines) > 0 {
				f := x.figure(what, title, caption, y, lines)
				f.Title += ": " + what
				s.Figures = append(s.Figures, f)
			}
		}
		add("latency", latencies, timed)
		add("throughput", bandwidths, func(s *reports.Measured) bool { return !timed(s) && s.Throughput != nil })
	}
	return s
}

// SeriesSection shows how each window went, a line for each repeat.
func SeriesSection(set *reports.Set) view.Section {
	s := view.Section{ID: "time", Title: "Over time",
		Intro: "Each interval of the window by itself; a gap is an interval in which nothing ended. Latency shows " +
			"the median as a strong line and the 99th percentile as a thin one; of a head-of-line result they are " +
			"the probes under load."}
	s.Figures = ofSizes(set, func(s *reports.Measured) bool { return s.Series != nil && len(s.Series.Points) > 1 },
		reports.Load.Title, seriesFigure)
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
