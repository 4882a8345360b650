package answer

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Interval is the median over rounds and an interval that holds it; nil where the rounds are too few for the level.
type Interval struct {
	Median float64
	Within *[2]float64
}

// Pairs is the ratio of a to b over rounds. Each round gives one ratio, so that a pace which both sides share cancels
// out; the interval is exact whatever the distribution of the ratios is (sign test).
func Pairs(a, b []float64, level float64) Interval {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return medianOf(ratios, level)
}

// medianOf is the median of values and its interval by order statistics.
func medianOf(values []float64, level float64) Interval {
	in := Interval{Median: reports.Median(values)}
	if cut, covered := reports.MedianRanks(len(values), level); covered >= level {
		sorted := slices.Sorted(slices.Values(values))
		in.Within = &[2]float64{sorted[cut], sorted[len(sorted)-1-cut]}
	}
	return in
}

// family is how sure all intervals of a run are together: at most one run of twenty has a false sentence.
const family = 0.95

// shared is the level of each of m intervals that hold together (Bonferroni).
func shared(m int) float64 { return 1 - (1-family)/float64(max(m, 1)) }

// roundsFor is how many rounds an interval at that level needs.
func roundsFor(level float64) int {
	n := 1
	for {
		if _, covered := reports.MedianRanks(n, level); covered >= level {
			return n
		}
		n++
	}
}
