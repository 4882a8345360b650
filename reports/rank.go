package reports

import (
	"math"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// rank is which of n samples in rising order, counted from 1, is the percentile: the
// smallest rank that covers at least that share, ceil(q·n), as readers of HdrHistogram
// files in Java, C and JavaScript take it. hdrhistogram-go takes floor(q·n+0.5), which
// is a sample too early in half of all sets.
func rank(percent float64, n int64) int64 {
	// 99.9/100·1000 is above 999 in floating point; HdrHistogram's Java goes one step
	// down for the same reason.
	q := math.Nextafter(percent, math.Inf(-1)) / 100
	return min(max(int64(math.Ceil(q*float64(n))), 1), n)
}

// ValuesAt returns the percentiles of the histogram, each as the upper end of its bucket. Without samples all are 0.
func ValuesAt(h *hdrhistogram.Histogram, percents []float64) []int64 {
	values := make([]int64, len(percents))
	n := h.TotalCount()
	for i, p := range percents {
		if n > 0 { // rounded to a rank, this percentile is the one of ours
			values[i] = h.ValueAtPercentile(100 * float64(rank(p, n)) / float64(n))
		}
	}
	return values
}
