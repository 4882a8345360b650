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

// Value is one figure of one round, with the least and greatest that it can have been on a machine that takes nothing.
type Value struct{ Value, Low, High float64 }

// ValueOf is that of a result's figure.
func ValueOf(r *reports.Result, f reports.Figure) Value {
	low, high := bounds(r, f)
	return Value{f.Value, low, high}
}

// Ratio is that of two sides over rounds: its median, the interval with what noise can have done, and without.
type Ratio struct {
	Median        float64
	Within, Clear *[2]float64
	least, most   float64 // medians of the ratios with the noise against and for it
}

// RatioOf is a over b, which have a value for each round. A nil b is 1 in every round.
func RatioOf(a, b []Value, level float64) Ratio {
	var above, below [3][]float64 // low, value, high
	for i, v := range a {
		w := Value{1, 1, 1}
		if b != nil {
			w = b[i]
		}
		for k, x := range []float64{v.Low, v.Value, v.High} {
			above[k] = append(above[k], x)
		}
		for k, x := range []float64{w.High, w.Value, w.Low} {
			below[k] = append(below[k], x)
		}
	}
	least, measured, most := Pairs(above[0], below[0], level), Pairs(above[1], below[1], level),
		Pairs(above[2], below[2], level)
	r := Ratio{Median: measured.Median, Clear: measured.Within, least: least.Median, most: most.Median}
	if r.Clear != nil {
		r.Within = &[2]float64{least.Within[0], finite(most.Within[1], r.Clear[1])}
	}
	return r
}

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

// Level is that of each of m intervals that hold together (Bonferroni).
func Level(m int) float64 { return 1 - (1-family)/float64(max(m, 1)) }

// RoundsFor is how many rounds an interval at that level needs.
func RoundsFor(level float64) int {
	n := 1
	for {
		if _, covered := reports.MedianRanks(n, level); covered >= level {
			return n
		}
		n++
	}
}
