package reports

import (
	"fmt"
	"html/template"
	"slices"
	"sort"
	"strings"
)

// charts numbers the figures, for identifiers that are unique on the page.
type charts struct{ n int }

func (c *charts) id() string {
	c.n++
	return fmt.Sprintf("c%d", c.n)
}

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

// percentileSection is one chart a load and size: the whole distribution of
// every stack, with the tail as wide as the median.
func (c *charts) percentileSection(set *sampleSet) section {
	s := section{ID: "percentiles", Title: "Latency distribution",
		Intro: "Every step to the right is a ten times rarer operation. A faint line rests on fewer than ten samples beyond it: read it as an anecdote. Repeats are pooled."}
	for _, g := range groupBy(set.samples, func(s *sample) (condition, bool) {
		return s.condition(), s.Latency != nil && s.Latency.Count > 0 && s.HOL == nil
	}) {
		for _, size := range spread(sizesOf(g.samples), curvesShown) {
			var lines []series
			for _, b := range split(ofSize(g.samples, size)) {
				lines = append(lines, percentileCurve(b, "", false, latenciesOf(b.runs)))
			}
			title := fmt.Sprintf("%s, %s", capital(g.key.what()), sizeLabel(size))
			if g.key.rate > 0 {
				title += ", " + rateLabel(g.key.rate)
			}
			s.Figures = append(s.Figures, c.percentileFigure(title, g.key.describe(), lines))
		}
	}
	return s
}

func ofSize(samples []*sample, size int64) []*sample {
	var out []*sample
	for _, s := range samples {
		if s.SizeBytes == size {
			out = append(out, s)
		}
	}
	return out
}

func latenciesOf(runs []*sample) []*Latency {
	ls := make([]*Latency, len(runs))
	for i, r := range runs {
		ls[i] = r.Latency
	}
	return ls
}

func (c *charts) percentileFigure(title, caption string, lines []series) figure {
	top := 100.0
	for _, l := range lines {
		for _, p := range l.points {
			top = max(top, p.x)
		}
	}
	x := scale{log: true, lo: 1, hi: top}
	ticks := []tick{{1, "0"}, {2, "50"}, {10, "90"}, {100, "99"}}
	nines := "99."
	for at := 1000.0; at <= top; at *= 10 {
		nines += "9"
		ticks = append(ticks, tick{at, nines})
	}
	chart := &lineChart{id: c.id(), title: "Latency percentiles: " + title, desc: "Logarithmic axes. " + describeSeries(lines),
		yLabel: "Latency", xLabel: "Percentile of operations [%]", x: x, xTicks: ticks, yUnit: nsLabel, series: lines}
	return figure{Title: title, Caption: caption, SVG: chart.render(), Data: percentileTableOf(title, lines)}
}

// percentileCurve draws a distribution of a series; what says which of several. x is 1/(1−q), so that a logarithmic
// axis gives each further nine the same width.
func percentileCurve(b *bySeries, what string, thin bool, ls []*Latency) series {
	name := b.series + what
	s := series{name: name, short: b.short + what, slot: b.slot, thin: thin}
	var count int64
	for _, l := range ls {
		count += l.Count
	}
	h := pooled(ls)
	n := float64(count)
	named := func(x, ns float64, label string) point {
		few := x > n/10
		tip := fmt.Sprintf("%s\n%s: %s", name, label, nsLabel(ns))
		if few {
			tip += "\nfew samples"
		}
		return point{x: x, y: ns, tip: tip, few: few}
	}
	for i, p := range ls[0].Percentiles() {
		x := percentileAxis[i]
		if x > n {
			break
		}
		ns := p.Ns
		if h != nil && len(ls) > 1 {
			ns = float64(h.ValueAtPercentile(p.Percent))
		} else if len(ls) > 1 {
			ns = median(eachLatency(ls, func(l *Latency) float64 { return l.Percentiles()[i].Ns }))
		}
		s.points = append(s.points, named(x, ns, trimZeros(fmt.Sprintf("%.3f", p.Percent))+" %"))
	}
	lowest := slices.Min(eachLatency(ls, func(l *Latency) float64 { return l.Min }))
	highest := slices.Max(eachLatency(ls, func(l *Latency) float64 { return l.Max }))
	s.points = append(s.points, point{x: 1, y: lowest, few: n < 10})
	if n > 0 {
		s.points = append(s.points, named(2*n, highest, "maximum of "+plural(count, "sample")))
	}
	if h != nil {
		var seen int64
		lastX, lastY := 0.0, 0.0
		var skipped point
		for _, bar := range h.Distribution() {
			if bar.Count == 0 {
				continue
			}
			seen += bar.Count
			// Half a sample, so that the last one has a place on the axis.
			x := n / max(n-float64(seen), 0.5)
			y := min(max(float64(bar.To), lowest), highest)
			p := point{x: x, y: y, few: x > n/10}
			switch jump := y > lastY*1.08; {
			case jump && skipped.x > 0:
				s.points = append(s.points, skipped, p)
			case jump || x > lastX*1.1:
				s.points = append(s.points, p)
			default:
				skipped = p
				continue
			}
			skipped, lastX, lastY = point{}, x, y
		}
	}
	sort.SliceStable(s.points, func(i, k int) bool {
		a, b := s.points[i], s.points[k]
		if a.x != b.x {
			return a.x < b.x
		}
		return a.y < b.y
	})
	return s
}

// percentileAxis is 1/(1−q) of each row of percentileTable, written out because
// 1−q is not exact in floating point.
var percentileAxis = []float64{2, 10, 100, 1e3, 1e4, 1e5}

func eachLatency(ls []*Latency, figure func(*Latency) float64) []float64 {
	v := make([]float64, len(ls))
	for i, l := range ls {
		v[i] = figure(l)
	}
	return v
}

// describeSeries is the chart in words: each named point of each series.
func describeSeries(lines []series) string {
	var out []string
	for _, l := range lines {
		var tips []string
		for _, p := range l.points {
			if _, figures, ok := strings.Cut(p.tip, "\n"); ok {
				tips = append(tips, strings.ReplaceAll(figures, "\n", ", "))
			}
		}
		out = append(out, l.name+": "+strings.Join(tips, "; ")+".")
	}
	return strings.Join(out, " ")
}

// sizeSection is latency against message size.
func (c *charts) sizeSection(set *sampleSet) section {
	s := section{ID: "sizes", Title: "Latency by message size",
		Intro: "The marker is the median; the whisker above it reaches the 99th percentile."}
	for _, g := range groupBy(set.samples, func(s *sample) (condition, bool) {
		return s.condition(), s.Latency != nil && s.Latency.Count > 0 && s.HOL == nil
	}) {
		sizes := sizesOf(g.samples)
		if len(sizes) < 2 {
			continue
		}
		var lines []series
		for _, b := range split(g.samples) {
			lines = append(lines, latencyLine(b, func(s *sample) float64 { return float64(max(s.SizeBytes, 1)) },
				func(s *sample) string { return sizeLabel(s.SizeBytes) }))
		}
		title := capital(g.key.what())
		chart := &lineChart{id: c.id(), title: "Latency by size: " + title, desc: "Logarithmic axes. " + describeSeries(lines),
			yLabel: "Latency, median to p99", xLabel: "Message size", x: sizeScale(sizes), xTicks: sizeTicks(sizes), yUnit: nsLabel, series: lines}
		s.Figures = append(s.Figures, figure{title, g.key.describe(), chart.render(), pointTable(title, "size", "latency", lines)})
	}
	return s
}

// latencyLine joins the medians of one series along x.
func latencyLine(b *bySeries, x func(*sample) float64, label func(*sample) string) series {
	line := series{name: b.series, short: b.short, slot: b.slot}
	for _, at := range groupBy(b.runs, func(s *sample) (float64, bool) { return x(s), true }) {
		p50 := medianOf(at.samples, func(s *sample) float64 { return s.Latency.P50 })
		p99 := medianOf(at.samples, func(s *sample) float64 { return s.Latency.P99 })
		few := at.samples[0].Latency.Percentiles()[2].TooFew
		tip := fmt.Sprintf("%s\n%s\np50 %s\np99 %s", b.series, label(at.samples[0]), nsLabel(p50), nsLabel(p99))
		if few {
			tip += " (few samples)"
		}
		if r := at.samples[0]; r.rate > 0 && r.Throughput != nil {
			tip += "\nachieved " + rateLabel(r.Throughput.OperationsPerSecond)
		}
		line.points = append(line.points, point{x: at.key, y: p50, high: p99, few: few, tip: tip})
	}
	sort.SliceStable(line.points, func(i, k int) bool { return line.points[i].x < line.points[k].x })
	return line
}

func sizeScale(sizes []int64) scale {
	return scale{log: true, lo: float64(max(sizes[0], 1)), hi: float64(max(sizes[len(sizes)-1], 1))}
}

func sizeTicks(sizes []int64) []tick {
	var ts []tick
	for _, n := range spread(sizes, 7) {
		ts = append(ts, tick{float64(max(n, 1)), sizeLabel(n)})
	}
	return ts
}

// throughputSection is bandwidth against message size, or bars for one size.
func (c *charts) throughputSection(set *sampleSet) section {
	s := section{ID: "throughput", Title: "Throughput", Intro: "Payload over the whole window; MiB/s is 2²⁰ bytes a second."}
	for _, g := range groupBy(set.samples, func(s *sample) (condition, bool) {
		// The rate of a ping-pong says nothing that its latency does not.
		return s.condition(), s.Throughput != nil && s.HOL == nil && s.rate == 0 && s.KV == nil && (s.Workload != "latency" || s.Latency == nil)
	}) {
		sizes, title := sizesOf(g.samples), capital(g.key.what())
		var lines []series
		for _, b := range split(g.samples) {
			lines = append(lines, throughputLine(b))
		}
		var svg template.HTML
		if len(sizes) > 1 {
			svg = (&lineChart{id: c.id(), title: "Throughput by size: " + title, desc: "Logarithmic axes. " + describeSeries(lines),
				yLabel: "Bandwidth [MiB/s]", xLabel: "Message size", x: sizeScale(sizes), xTicks: sizeTicks(sizes), yUnit: digits3, series: lines}).render()
		} else {
			title += ", " + sizeLabel(sizes[0])
			chart := &barChart{id: c.id(), title: "Throughput: " + title, desc: describeSeries(lines), xLabel: "Bandwidth [MiB/s]", unit: digits3}
			for _, l := range lines {
				p := l.points[0]
				chart.bars = append(chart.bars, bar{block: l.short, slot: l.slot, value: p.y, text: digits3(p.y), tip: p.tip, firstOfKind: true})
			}
			svg = chart.render()
		}
		s.Figures = append(s.Figures, figure{title, g.key.describe(), svg, pointTable(title, "size", "throughput", lines)})
	}
	return s
}

func throughputLine(b *bySeries) series {
	line := series{name: b.series, short: b.short, slot: b.slot}
	for _, at := range groupBy(b.runs, func(s *sample) (int64, bool) { return s.SizeBytes, true }) {
		bw := medianOf(at.samples, func(s *sample) float64 { return s.Throughput.BytesPerSecond })
		ops := medianOf(at.samples, func(s *sample) float64 { return s.Throughput.OperationsPerSecond })
		line.points = append(line.points, point{x: float64(max(at.key, 1)), y: bw / (1 << 20),
			tip: fmt.Sprintf("%s\n%s\n%s\n%s", b.series, sizeLabel(at.key), bandwidthLabel(bw), rateLabel(ops))})
	}
	sort.SliceStable(line.points, func(i, k int) bool { return line.points[i].x < line.points[k].x })
	return line
}

// rateSection is latency under load: an open loop at several rates.
func (c *charts) rateSection(set *sampleSet) section {
	s := section{ID: "load", Title: "Latency under load",
		Intro: "Open loop: operations begin when they are due, and waiting counts. The marker is the median; the whisker reaches the 99th percentile."}
	type key struct {
		load
		extra string
		size  int64
	}
	for _, g := range groupBy(set.samples, func(s *sample) (key, bool) {
		return key{loadOf(s.Result), s.extra, s.SizeBytes}, s.rate > 0 && s.Latency != nil && s.Latency.Count > 0
	}) {
		var rates []float64
		for _, r := range g.samples {
			rates = append(rates, r.rate)
		}
		slices.Sort(rates)
		if rates = slices.Compact(rates); len(rates) < 2 {
			continue
		}
		var lines []series
		for _, b := range split(g.samples) {
			lines = append(lines, latencyLine(b, func(s *sample) float64 { return s.rate },
				func(s *sample) string { return rateLabel(s.rate) + " offered" }))
		}
		var ticks []tick
		for _, r := range rates {
			ticks = append(ticks, tick{r, strings.TrimSuffix(rateLabel(r), " op/s")})
		}
		title := fmt.Sprintf("%s, %s", capital(g.key.what()), sizeLabel(g.key.size))
		chart := &lineChart{id: c.id(), title: "Latency by offered rate: " + title, desc: "Logarithmic axes. " + describeSeries(lines),
			yLabel: "Latency, median to p99", xLabel: "Offered rate [op/s]", x: scale{log: true, lo: rates[0], hi: rates[len(rates)-1]},
			xTicks: ticks, yUnit: nsLabel, series: lines}
		s.Figures = append(s.Figures, figure{title, g.key.conditions(), chart.render(), pointTable(title, "offered rate", "latency", lines)})
	}
	return s
}

// pointTable is the data of a chart as text, from the hover texts.
func pointTable(title, x, y string, lines []series) htmlTable {
	t := htmlTable{Caption: capital(y) + " of " + title, Head: headCells("series", x, "figures")}
	for _, l := range lines {
		for _, p := range l.points {
			f := strings.SplitN(p.tip, "\n", 3)
			if len(f) == 3 {
				t.Rows = append(t.Rows, []htmlCell{nameCell(l.name), numberCell(f[1]), textCell(strings.ReplaceAll(f[2], "\n", ", "))})
			}
		}
	}
	return t
}

// percentileTableOf lists the named points of every curve.
func percentileTableOf(title string, lines []series) htmlTable {
	t := htmlTable{Caption: "Percentiles of " + title, Head: headCells("series", "percentile", "latency")}
	for _, l := range lines {
		for _, p := range l.points {
			if _, rest, ok := strings.Cut(p.tip, "\n"); ok {
				at, value, _ := strings.Cut(rest, ": ")
				value, _, _ = strings.Cut(value, "\n")
				t.Rows = append(t.Rows, []htmlCell{nameCell(l.name), numberCell(at), {Text: value, Class: "n", Mark: p.few}})
			}
		}
	}
	return t
}

// capital raises the first letter of an ASCII word, or all of an abbreviation.
func capital(s string) string {
	if s == "" {
		return s
	}
	if word, rest, _ := strings.Cut(s, " "); word == "rpc" || word == "kv" {
		return strings.TrimSpace(strings.ToUpper(word) + " " + rest)
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
