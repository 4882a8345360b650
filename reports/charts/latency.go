package charts

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// curvesShown bounds the percentile charts of one load; the tables hold all sizes.
const curvesShown = 6

// spread picks n of the values evenly, with the first and the last.
func spread[T any](all []T, n int) (out []T) {
	if len(all) <= n {
		return all
	}
	for i := range n {
		out = append(out, all[i*(len(all)-1)/(n-1)])
	}
	return out
}

// PercentileSection is the distribution of every stack, a chart for each load and size.
func PercentileSection(set *reports.Set) view.Section {
	s := view.Section{ID: "percentiles", Title: "Latency distribution",
		Intro: "Every step to the right is a ten times rarer operation. A faint line has fewer than ten samples " +
			"beyond it: read it as an anecdote. Repeats are pooled."}
	s.Figures = ofSizes(set, timed, reports.Load.What, func(title, caption string, in []*reports.Measured) view.Figure {
		lines := view.Each(reports.Split(in), func(b *reports.BySeries) view.Series {
			return PercentileCurve(b, "", false,
				view.Each(b.Runs, func(x *reports.Measured) *reports.Latency { return x.Latency }))
		})
		return PercentileFigure(title, caption, lines)
	})
	return s
}

// ofSizes are the figures of some of the sizes of each condition, of the samples that are.
func ofSizes(set *reports.Set, are func(*reports.Measured) bool, name func(reports.Load) string,
	figure func(title, caption string, in []*reports.Measured) view.Figure) (all []view.Figure) {
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
		return s.Condition(), are(s)
	}) {
		for _, size := range spread(reports.SizesOf(g.Samples), curvesShown) {
			title := view.Join(", ", view.Capital(name(g.Key.Load)), reports.SizeLabel(size),
				view.When(g.Key.Rate > 0, view.RateLabel(g.Key.Rate)))
			all = append(all, figure(title, g.Key.Describe(), OfSize(g.Samples, size)))
		}
	}
	return all
}

// OfSize are the samples of one size.
func OfSize(samples []*reports.Measured, size int64) []*reports.Measured {
	return view.Only(samples, func(s *reports.Measured) bool { return s.SizeBytes == size })
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

func pooled(h *hdrhistogram.Histogram, ls []*reports.Latency, i int) float64 {
	if h != nil && len(ls) > 1 {
		return float64(reports.ValuesAt(h, []float64{ls[0].Percentiles()[i].Percent})[0])
	}
	return reports.MedianOf(ls, func(l *reports.Latency) float64 { return l.Percentiles()[i].Ns })
}

// PercentileCurve draws a distribution; what says which of several. x is 1/(1−q), so that each further nine has the
// same width.
func PercentileCurve(b *reports.BySeries, what string, thin bool, ls []*reports.Latency) view.Series {
	name := b.Series + what
	s := view.Series{Name: name, Short: b.Short + what, Slot: b.Slot, Thin: thin}
	var count int64
	lowest, highest := math.Inf(1), math.Inf(-1)
	for _, l := range ls {
		count, lowest, highest = count+l.Count, min(lowest, l.Min), max(highest, l.Max)
	}
	h := reports.Pooled(ls)
	n := float64(count)
	named := func(x, ns float64, label string) view.Point {
		few := x > n/10
		tip := fmt.Sprintf("%s\n%s: %s%s", name, label, view.NsLabel(ns), view.When(few, "\nfew samples"))
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
	slices.SortStableFunc(s.Points, func(p, q view.Point) int {
		return cmp.Or(cmp.Compare(p.X, q.X), cmp.Compare(p.Y, q.Y))
	})
	return s
}

// percentileAxis is 1/(1−q) of each row of percentileTable, written out because 1−q is not exact in floating point.
var percentileAxis = []float64{2, 10, 100, 1e3, 1e4, 1e5}

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

// PointTable is the data of a chart as text, from the hover texts.
func PointTable(title, x, y string, lines []view.Series) view.Grid {
	t := view.Grid{Caption: view.Capital(y) + " of " + title, Head: view.HeadCells("series", x, "figures")}
	for _, l := range lines {
		for _, p := range l.Points {
			f := strings.SplitN(p.Tip, "\n", 3)
			if len(f) == 3 {
				t.Add([]view.GridCell{view.NameCell(l.Name), view.NumberCell(f[1]),
					view.TextCell(strings.ReplaceAll(f[2], "\n", ", "))})
			}
		}
	}
	return t
}

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
				t.Add([]view.GridCell{view.NameCell(l.Name), view.NumberCell(at), view.NumberCell(value)})
			}
		}
	}
	return t
}
