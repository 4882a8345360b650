package charts

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// curvesShown bounds the percentile charts of one load; the tables hold all
// sizes.
const curvesShown = 6

// spread picks n of the sizes evenly, with the first and the last.
func spread(sizes []int64, n int) []int64 {
	if len(sizes) <= n {
		return sizes
	}
	out := make([]int64, 0, n)
	for i := range n {
		out = append(out, sizes[i*(len(sizes)-1)/(n-1)])
	}
	return out
}

// PercentileSection is one chart a load and size: the whole distribution of
// every stack, with the tail as wide as the median.
func PercentileSection(set *reports.Set) view.Section {
	s := view.Section{ID: "percentiles", Title: "Latency distribution",
		Intro: "Every step to the right is a ten times rarer operation. A faint line has fewer than ten samples " +
			"beyond it: read it as an anecdote. Repeats are pooled."}
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
		return s.Condition(), s.Latency != nil && s.Latency.Count > 0
	}) {
		for _, size := range spread(reports.SizesOf(g.Samples), curvesShown) {
			var lines []view.Series
			for _, b := range reports.Split(OfSize(g.Samples, size)) {
				lines = append(lines, PercentileCurve(b, "", false, latenciesOf(b.Runs)))
			}
			title := fmt.Sprintf("%s, %s", view.Capital(g.Key.What()), reports.SizeLabel(size))
			if g.Key.Rate > 0 {
				title += ", " + view.RateLabel(g.Key.Rate)
			}
			s.Figures = append(s.Figures, PercentileFigure(title, g.Key.Describe(), lines))
		}
	}
	return s
}

// OfSize are the samples of one size.
func OfSize(samples []*reports.Measured, size int64) []*reports.Measured {
	var out []*reports.Measured
	for _, s := range samples {
		if s.SizeBytes == size {
			out = append(out, s)
		}
	}
	return out
}

func latenciesOf(runs []*reports.Measured) []*reports.Latency {
	ls := make([]*reports.Latency, len(runs))
	for i, r := range runs {
		ls[i] = r.Latency
	}
	return ls
}

// PercentileFigure is a chart of distributions with their named points.
func PercentileFigure(title, caption string, lines []view.Series) view.Figure {
	top := 100.0
	for _, l := range lines {
		for _, p := range l.Points {
			top = max(top, p.X)
		}
	}
	x := view.Scale{Log: true, Lo: 1, Hi: top}
	ticks := []view.Tick{{At: 1, Label: "0"}, {At: 2, Label: "50"}, {At: 10, Label: "90"}, {At: 100, Label: "99"}}
	nines := "99."
	for at := 1000.0; at <= top; at *= 10 {
		nines += "9"
		ticks = append(ticks, view.Tick{At: at, Label: nines})
	}
	chart := &view.LineChart{Title: "Latency percentiles: " + title, Desc: "Logarithmic axes. " + DescribeSeries(lines),
		YLabel: "Latency", XLabel: "Percentile of operations [%]", X: x, XTicks: ticks, XText: percentText,
		YUnit: view.NsLabel, Series: lines}
	return view.Figure{Title: title, Caption: caption, Chart: chart, Data: percentileTableOf(title, lines)}
}

// percentText is the percentile of a place on the axis, which has 1/(1−q).
func percentText(x float64) string { return strconv.FormatFloat(100-100/x, 'g', 9, 64) }

// PooledPercentiles are those of all samples together, by name; without those that the samples are too few for.
func PooledPercentiles(ls []*reports.Latency, names ...string) map[string]float64 {
	var count int64
	for _, l := range ls {
		count += l.Count
	}
	h, out := reports.Pooled(ls), map[string]float64{}
	for i, p := range ls[0].Percentiles() {
		if few := float64(count)*(1-p.Percent/100) < leastBeyond-1e-6; !few && slices.Contains(names, p.Name) {
			out[p.Name] = pooled(h, ls, i)
		}
	}
	return out
}

// leastBeyond is how many samples a percentile has beyond it, at least, as in the tables.
const leastBeyond = 10

// pooled is percentile i of all samples together, or without their histogram the median of those of each.
func pooled(h *hdrhistogram.Histogram, ls []*reports.Latency, i int) float64 {
	if h != nil && len(ls) > 1 {
		return float64(reports.ValuesAt(h, []float64{ls[0].Percentiles()[i].Percent})[0])
	}
	return reports.Median(eachLatency(ls, func(l *reports.Latency) float64 { return l.Percentiles()[i].Ns }))
}

// PercentileCurve draws a distribution of a series; what says which of several. x is 1/(1−q), so that a logarithmic
// axis gives each further nine the same width.
func PercentileCurve(b *reports.BySeries, what string, thin bool, ls []*reports.Latency) view.Series {
	name := b.Series + what
	s := view.Series{Name: name, Short: b.Short + what, Slot: b.Slot, Thin: thin}
	var count int64
	for _, l := range ls {
		count += l.Count
	}
	h := reports.Pooled(ls)
	n := float64(count)
	named := func(x, ns float64, label string) view.Point {
		few := x > n/10
		tip := fmt.Sprintf("%s\n%s: %s", name, label, view.NsLabel(ns))
		if few {
			tip += "\nfew samples"
		}
		return view.Point{X: x, Y: ns, Tip: tip, Few: few}
	}
	for i, p := range ls[0].Percentiles() {
		x := percentileAxis[i]
		if x > n {
			break
		}
		ns := pooled(h, ls, i)
		s.Points = append(s.Points, named(x, ns, view.TrimZeros(fmt.Sprintf("%.3f", p.Percent))+" %"))
	}
	lowest := slices.Min(eachLatency(ls, func(l *reports.Latency) float64 { return l.Min }))
	highest := slices.Max(eachLatency(ls, func(l *reports.Latency) float64 { return l.Max }))
	s.Points = append(s.Points, view.Point{X: 1, Y: lowest, Few: n < 10})
	if n > 0 {
		s.Points = append(s.Points, named(2*n, highest, "maximum of "+view.Plural(count, "sample")))
	}
	if h != nil {
		var seen int64
		lastX, lastY := 0.0, 0.0
		var skipped view.Point
		for _, bar := range h.Distribution() {
			if bar.Count == 0 {
				continue
			}
			seen += bar.Count
			// Half a sample, so that the last one has a place on the axis.
			x := n / max(n-float64(seen), 0.5)
			y := min(max(float64(bar.To), lowest), highest)
			p := view.Point{X: x, Y: y, Few: x > n/10}
			switch jump := y > lastY*1.08; {
			case jump && skipped.X > 0:
				s.Points = append(s.Points, skipped, p)
			case jump || x > lastX*1.1:
				s.Points = append(s.Points, p)
			default:
				skipped = p
				continue
			}
			skipped, lastX, lastY = view.Point{}, x, y
		}
	}
	sort.SliceStable(s.Points, func(i, k int) bool {
		a, b := s.Points[i], s.Points[k]
		if a.X != b.X {
			return a.X < b.X
		}
		return a.Y < b.Y
	})
	return s
}

// percentileAxis is 1/(1−q) of each row of percentileTable, written out because
// 1−q is not exact in floating point.
var percentileAxis = []float64{2, 10, 100, 1e3, 1e4, 1e5}

func eachLatency(ls []*reports.Latency, figure func(*reports.Latency) float64) []float64 {
	v := make([]float64, len(ls))
	for i, l := range ls {
		v[i] = figure(l)
	}
	return v
}

// DescribeSeries is the chart in words: each named point of each series.
func DescribeSeries(lines []view.Series) string {
	var out []string
	for _, l := range lines {
		var tips []string
		for _, p := range l.Points {
			if _, figures, ok := strings.Cut(p.Tip, "\n"); ok {
				tips = append(tips, strings.ReplaceAll(figures, "\n", ", "))
			}
		}
		out = append(out, l.Name+": "+strings.Join(tips, "; ")+".")
	}
	return strings.Join(out, " ")
}

// SizeSection is latency against message size.
func SizeSection(set *reports.Set) view.Section {
	s := view.Section{ID: "sizes", Title: "Latency by message size",
		Intro: "The marker is the median; the whisker above it reaches the 99th percentile."}
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
		return s.Condition(), s.Latency != nil && s.Latency.Count > 0
	}) {
		sizes := reports.SizesOf(g.Samples)
		if len(sizes) < 2 {
			continue
		}
		var lines []view.Series
		for _, b := range reports.Split(g.Samples) {
			lines = append(lines, latencyLine(b, func(s *reports.Measured) float64 {
				return float64(max(s.SizeBytes, 1))
			},
				func(s *reports.Measured) string { return reports.SizeLabel(s.SizeBytes) }))
		}
		title := view.Capital(g.Key.What())
		chart := &view.LineChart{Title: "Latency by size: " + title, Desc: "Logarithmic axes. " + DescribeSeries(lines),
			YLabel: "Latency, median to p99", XLabel: "Message size", X: SizeScale(sizes), XTicks: SizeTicks(sizes),
			YUnit: view.NsLabel, Series: lines}
		s.Figures = append(s.Figures, view.Figure{Title: title, Caption: g.Key.Describe(), Chart: chart,
			Data: PointTable(title, "size", "latency", lines)})
	}
	return s
}

// latencyLine joins the medians of one series along x.
func latencyLine(b *reports.BySeries, x func(*reports.Measured) float64,
	label func(*reports.Measured) string) view.Series {
	line := view.Series{Name: b.Series, Short: b.Short, Slot: b.Slot}
	for _, at := range reports.GroupBy(b.Runs, func(s *reports.Measured) (float64, bool) { return x(s), true }) {
		p50 := reports.MedianOf(at.Samples, func(s *reports.Measured) float64 { return s.Latency.P50 })
		p99 := reports.MedianOf(at.Samples, func(s *reports.Measured) float64 { return s.Latency.P99 })
		few := at.Samples[0].Latency.Percentiles()[2].TooFew
		tip := fmt.Sprintf("%s\n%s\np50 %s", b.Series, label(at.Samples[0]), view.NsLabel(p50))
		if !few {
			tip += "\np99 " + view.NsLabel(p99)
		}
		if r := at.Samples[0]; r.Rate > 0 && r.Throughput != nil {
			tip += "\nachieved " + view.RateLabel(r.Throughput.OperationsPerSecond)
		}
		line.Points = append(line.Points, view.Point{X: at.Key, Y: p50, High: p99, Few: few, Tip: tip})
	}
	sort.SliceStable(line.Points, func(i, k int) bool { return line.Points[i].X < line.Points[k].X })
	return line
}

// SizeScale is an axis over sizes, which rise.
func SizeScale(sizes []int64) view.Scale {
	return view.Scale{Log: true, Lo: float64(max(sizes[0], 1)), Hi: float64(max(sizes[len(sizes)-1], 1))}
}

// SizeTicks are the labels of such an axis.
func SizeTicks(sizes []int64) []view.Tick {
	var ts []view.Tick
	for _, n := range spread(sizes, 7) {
		ts = append(ts, view.Tick{At: float64(max(n, 1)), Label: reports.SizeLabel(n)})
	}
	return ts
}

// ThroughputSection is bandwidth against message size, or bars for one size.
func ThroughputSection(set *reports.Set) view.Section {
	s := view.Section{ID: "throughput", Title: "Throughput",
		Intro: "Payload over the whole window; MiB/s is 2²⁰ bytes a second."}
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
		return s.Condition(), s.Streamed() && s.Rate == 0
	}) {
		sizes, title := reports.SizesOf(g.Samples), view.Capital(g.Key.What())
		var lines []view.Series
		for _, b := range reports.Split(g.Samples) {
			lines = append(lines, ThroughputLine(b))
		}
		var drawn view.Chart
		if len(sizes) > 1 {
			drawn = &view.LineChart{Title: "Throughput by size: " + title, Desc: "Logarithmic axes. " +
				DescribeSeries(lines),
				YLabel: "Bandwidth [MiB/s]", XLabel: "Message size", X: SizeScale(sizes), XTicks: SizeTicks(sizes),
				YUnit: view.Digits3, Series: lines}
		} else {
			title += ", " + reports.SizeLabel(sizes[0])
			bars := &view.BarChart{Title: "Throughput: " + title, Desc: DescribeSeries(lines),
				XLabel: "Bandwidth [MiB/s]", Unit: view.Digits3}
			for _, l := range lines {
				p := l.Points[0]
				bars.Bars = append(bars.Bars, view.Bar{Block: l.Short, Slot: l.Slot, Value: p.Y,
					Text: view.Digits3(p.Y), Tip: p.Tip, FirstOfKind: true})
			}
			drawn = bars
		}
		s.Figures = append(s.Figures, view.Figure{Title: title, Caption: g.Key.Describe(), Chart: drawn,
			Data: PointTable(title, "size", "throughput", lines)})
	}
	return s
}

// ThroughputLine joins the bandwidths of one series along the sizes.
func ThroughputLine(b *reports.BySeries) view.Series {
	line := view.Series{Name: b.Series, Short: b.Short, Slot: b.Slot}
	for _, at := range reports.GroupBy(b.Runs, func(s *reports.Measured) (int64, bool) { return s.SizeBytes, true }) {
		bw := reports.MedianOf(at.Samples, func(s *reports.Measured) float64 { return s.Throughput.BytesPerSecond })
		ops := reports.MedianOf(at.Samples, func(s *reports.Measured) float64 {
			return s.Throughput.OperationsPerSecond
		})
		line.Points = append(line.Points, view.Point{X: float64(max(at.Key, 1)), Y: bw / (1 << 20),
			Tip: fmt.Sprintf("%s\n%s\n%s\n%s", b.Series, reports.SizeLabel(at.Key), view.BandwidthLabel(bw),
				view.RateLabel(ops))})
	}
	sort.SliceStable(line.Points, func(i, k int) bool { return line.Points[i].X < line.Points[k].X })
	return line
}

// RateSection is latency under load: an open loop at several rates.
func RateSection(set *reports.Set) view.Section {
	s := view.Section{ID: "load", Title: "Latency under load",
		Intro: "Open loop: operations begin when they are due, and waiting counts. The marker is the median; the " +
			"whisker reaches the 99th percentile."}
	type key struct {
		reports.Load
		Extra string
		Size  int64
	}
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (key, bool) {
		return key{Load: reports.LoadOf(s.Result), Extra: s.Extra, Size: s.SizeBytes}, s.Rate > 0 && s.Latency != nil &&
			s.Latency.Count > 0
	}) {
		var rates []float64
		for _, r := range g.Samples {
			rates = append(rates, r.Rate)
		}
		slices.Sort(rates)
		if rates = slices.Compact(rates); len(rates) < 2 {
			continue
		}
		var lines []view.Series
		for _, b := range reports.Split(g.Samples) {
			lines = append(lines, latencyLine(b, func(s *reports.Measured) float64 { return s.Rate },
				func(s *reports.Measured) string { return view.RateLabel(s.Rate) + " offered" }))
		}
		var ticks []view.Tick
		for _, r := range rates {
			ticks = append(ticks, view.Tick{At: r, Label: strings.TrimSuffix(view.RateLabel(r), " op/s")})
		}
		title := fmt.Sprintf("%s, %s", view.Capital(g.Key.What()), reports.SizeLabel(g.Key.Size))
		chart := &view.LineChart{Title: "Latency by offered rate: " + title, Desc: "Logarithmic axes. " +
			DescribeSeries(lines),
			YLabel: "Latency, median to p99", XLabel: "Offered rate [op/s]",
			X:      view.Scale{Log: true, Lo: rates[0], Hi: rates[len(rates)-1]},
			XTicks: ticks, YUnit: view.NsLabel, Series: lines}
		s.Figures = append(s.Figures, view.Figure{Title: title, Caption: g.Key.Conditions(), Chart: chart,
			Data: PointTable(title, "offered rate", "latency", lines)})
	}
	return s
}

// PointTable is the data of a chart as text, from the hover texts.
func PointTable(title, x, y string, lines []view.Series) view.Grid {
	t := view.Grid{Caption: view.Capital(y) + " of " + title, Head: view.HeadCells("series", x, "figures")}
	for _, l := range lines {
		for _, p := range l.Points {
			f := strings.SplitN(p.Tip, "\n", 3)
			if len(f) == 3 {
				t.Rows = append(t.Rows, []view.GridCell{view.NameCell(l.Name), view.NumberCell(f[1]),
					view.TextCell(strings.ReplaceAll(f[2], "\n", ", "))})
			}
		}
	}
	return t
}

// percentileTableOf lists the named points of every curve.
func percentileTableOf(title string, lines []view.Series) view.Grid {
	t := view.Grid{Caption: "Percentiles of " + title, Head: view.HeadCells("series", "percentile", "latency")}
	for _, l := range lines {
		for _, p := range l.Points {
			if _, rest, ok := strings.Cut(p.Tip, "\n"); ok {
				at, value, _ := strings.Cut(rest, ": ")
				if p.Few && !strings.HasPrefix(at, "maximum") {
					continue
				}
				value, _, _ = strings.Cut(value, "\n")
				t.Rows = append(t.Rows, []view.GridCell{view.NameCell(l.Name), view.NumberCell(at),
					view.NumberCell(value)})
			}
		}
	}
	return t
}
