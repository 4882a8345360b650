package charts

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// sweepKey is what the points of one sweep over connections share.
type sweepKey struct {
	reports.Load
	rate  float64
	extra string
	size  int64
}

// sweeps are the samples measured with several numbers of QPs, one group a sweep.
func sweeps(set *reports.Set) []*reports.Group[sweepKey] {
	all := reports.GroupBy(set.Samples, func(s *reports.Measured) (sweepKey, bool) {
		return sweepKey{reports.LoadOf(s.Result).AcrossQPs(), s.Rate, s.Extra, s.SizeBytes}, true
	})
	return slices.DeleteFunc(all, func(g *reports.Group[sweepKey]) bool { return len(connectionCounts(g.Samples)) < 2 })
}

// connectionCounts are the numbers of QPs present, rising.
func connectionCounts(samples []*reports.Measured) []int {
	var counts []int
	for _, s := range samples {
		counts = append(counts, s.QPs)
	}
	slices.Sort(counts)
	return slices.Compact(counts)
}

// SweepSection is latency and throughput against the number of connections.
func SweepSection(set *reports.Set) view.Section {
	s := view.Section{ID: "connections", Title: "Connections",
		Intro: "The same work on more and more connections. The marker is the median; the whisker of a latency " +
			"reaches the 99th percentile."}
	for _, g := range sweeps(set) {
		counts := connectionCounts(g.Samples)
		x := view.Scale{Log: true, Lo: float64(counts[0]), Hi: float64(counts[len(counts)-1])}
		ticks := make([]view.Tick, 0, len(counts))
		for _, n := range spreadCounts(counts, 8) {
			ticks = append(ticks, view.Tick{At: float64(n), Label: strconv.Itoa(n)})
		}
		title, caption := fmt.Sprintf("%s, %s", view.Capital(g.Key.What()), reports.SizeLabel(g.Key.size)),
			g.Key.Conditions()
		if g.Key.rate > 0 {
			caption += ", " + view.RateLabel(g.Key.rate) + " offered"
		}
		at := func(s *reports.Measured) string { return view.Plural(int64(s.QPs), g.Key.Connections()) }
		add := func(what, yLabel string, unit func(float64) string, timed bool,
			line func(*reports.BySeries) view.Series) {
			var lines []view.Series
			for _, b := range reports.Split(g.Samples) {
				b.Runs = slices.DeleteFunc(b.Runs, func(s *reports.Measured) bool {
					hasLatency := s.Latency != nil && s.Latency.Count > 0
					return hasLatency != timed || !timed && s.Throughput == nil
				})
				if len(b.Runs) > 0 {
					lines = append(lines, line(b))
				}
			}
			if len(lines) == 0 {
				return
			}
			chart := &view.LineChart{Title: what + " by connections: " + title, Desc: "Logarithmic axes. " +
				DescribeSeries(lines),
				YLabel: yLabel, XLabel: view.Capital(g.Key.Connections()) + "s", X: x, XTicks: ticks, YUnit: unit,
				Series: lines}
			s.Figures = append(s.Figures, view.Figure{Title: title + ": " + what, Caption: caption, Chart: chart,
				Data: PointTable(title, "connections", what, lines)})
		}
		add("latency", "Latency, median to p99", view.NsLabel, true, func(b *reports.BySeries) view.Series {
			return latencyLine(b, func(s *reports.Measured) float64 { return float64(s.QPs) }, at)
		})
		add("throughput", "Bandwidth [MiB/s]", view.Digits3, false, func(b *reports.BySeries) view.Series {
			return connectionRates(b, at)
		})
	}
	return s
}

// connectionRates joins the bandwidths of one series along the connections.
func connectionRates(b *reports.BySeries, label func(*reports.Measured) string) view.Series {
	line := view.Series{Name: b.Series, Short: b.Short, Slot: b.Slot}
	for _, g := range reports.GroupBy(b.Runs, func(s *reports.Measured) (int, bool) { return s.QPs, true }) {
		bw := reports.MedianOf(g.Samples, func(s *reports.Measured) float64 { return s.Throughput.BytesPerSecond })
		ops := reports.MedianOf(g.Samples, func(s *reports.Measured) float64 {
			return s.Throughput.OperationsPerSecond
		})
		line.Points = append(line.Points, view.Point{X: float64(g.Key), Y: bw / (1 << 20),
			Tip: fmt.Sprintf("%s\n%s\n%s\n%s", b.Series, label(g.Samples[0]), view.BandwidthLabel(bw),
				view.RateLabel(ops))})
	}
	slices.SortStableFunc(line.Points, func(a, b view.Point) int { return cmp.Compare(a.X, b.X) })
	return line
}

// spreadCounts picks n of the counts evenly, with the first and the last.
func spreadCounts(counts []int, n int) []int {
	if len(counts) <= n {
		return counts
	}
	out := make([]int, 0, n)
	for i := range n {
		out = append(out, counts[i*(len(counts)-1)/(n-1)])
	}
	return out
}
