package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// sweepKey is what the points of one sweep over connections share.
type sweepKey struct {
	load
	rate  float64
	extra string
	size  int64
}

// sweeps are the samples measured with several numbers of QPs, one group a sweep.
func sweeps(set *sampleSet) []*group[sweepKey] {
	all := groupBy(set.samples, func(s *sample) (sweepKey, bool) {
		// Calls have charts of their own, over more than connections.
		return sweepKey{loadOf(s.Result).acrossQPs(), s.rate, s.extra, s.SizeBytes}, s.HOL == nil && s.RPC == nil
	})
	return slices.DeleteFunc(all, func(g *group[sweepKey]) bool { return len(connectionCounts(g.samples)) < 2 })
}

// connectionCounts are the numbers of QPs present, rising.
func connectionCounts(samples []*sample) []int {
	var counts []int
	for _, s := range samples {
		counts = append(counts, s.QPs)
	}
	slices.Sort(counts)
	return slices.Compact(counts)
}

// sweepSection is latency and throughput against the number of connections.
func (c *charts) sweepSection(set *sampleSet) section {
	s := section{ID: "connections", Title: "Connections",
		Intro: "The same work on more and more connections. The marker is the median; the whisker of a latency reaches the 99th percentile."}
	for _, g := range sweeps(set) {
		counts := connectionCounts(g.samples)
		x := scale{log: true, lo: float64(counts[0]), hi: float64(counts[len(counts)-1])}
		ticks := make([]tick, 0, len(counts))
		for _, n := range spreadCounts(counts, 8) {
			ticks = append(ticks, tick{float64(n), strconv.Itoa(n)})
		}
		title, caption := fmt.Sprintf("%s, %s", capital(g.key.what()), sizeLabel(g.key.size)), g.key.conditions()
		if g.key.rate > 0 {
			caption += ", " + rateLabel(g.key.rate) + " offered"
		}
		at := func(s *sample) string { return plural(int64(s.QPs), g.key.connections()) }
		add := func(what, yLabel string, unit func(float64) string, timed bool, line func(*bySeries) series) {
			var lines []series
			for _, b := range split(g.samples) {
				b.runs = slices.DeleteFunc(b.runs, func(s *sample) bool {
					hasLatency := s.Latency != nil && s.Latency.Count > 0
					return hasLatency != timed || !timed && s.Throughput == nil
				})
				if len(b.runs) > 0 {
					lines = append(lines, line(b))
				}
			}
			if len(lines) == 0 {
				return
			}
			chart := &lineChart{id: c.id(), title: what + " by connections: " + title, desc: "Logarithmic axes. " + describeSeries(lines),
				yLabel: yLabel, xLabel: capital(g.key.connections()) + "s", x: x, xTicks: ticks, yUnit: unit, series: lines}
			s.Figures = append(s.Figures, figure{title + ": " + what, caption, chart.render(), pointTable(title, "connections", what, lines)})
		}
		add("latency", "Latency, median to p99", nsLabel, true, func(b *bySeries) series {
			return latencyLine(b, func(s *sample) float64 { return float64(s.QPs) }, at)
		})
		add("throughput", "Bandwidth [MiB/s]", digits3, false, func(b *bySeries) series { return connectionRates(b, at) })
	}
	return s
}

// connectionRates joins the bandwidths of one series along the connections.
func connectionRates(b *bySeries, label func(*sample) string) series {
	line := series{name: b.series, short: b.short, slot: b.slot}
	for _, g := range groupBy(b.runs, func(s *sample) (int, bool) { return s.QPs, true }) {
		bw := medianOf(g.samples, func(s *sample) float64 { return s.Throughput.BytesPerSecond })
		ops := medianOf(g.samples, func(s *sample) float64 { return s.Throughput.OperationsPerSecond })
		line.points = append(line.points, point{x: float64(g.key), y: bw / (1 << 20),
			tip: fmt.Sprintf("%s\n%s\n%s\n%s", b.series, label(g.samples[0]), bandwidthLabel(bw), rateLabel(ops))})
	}
	slices.SortStableFunc(line.points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
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
