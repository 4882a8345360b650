package reports

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Latency summarises one set of samples, in nanoseconds. Min, Max, Mean and StdDev (population) are exact; percentiles
// are right within 0.1 %.
type Latency struct {
	Count  int64   `json:"count"`
	Min    float64 `json:"min"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	P999   float64 `json:"p999"`
	P9999  float64 `json:"p9999"`
	P99999 float64 `json:"p99999"`
	Max    float64 `json:"max"`
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stddev"`

	// TooFew names the percentiles ("p999") that have fewer than 10/(1−q) samples.
	TooFew []string `json:"too_few,omitempty"`

	// Unfinished counts the samples that are lower bounds: operations that were due and not done when the window ended.
	// AtLeast names the figures that are lower bounds for that reason. Others may be too low by that many ranks.
	Unfinished int64    `json:"unfinished,omitempty"`
	AtLeast    []string `json:"at_least,omitempty"`

	// Clamped counts the samples outside 0..60 s.
	Clamped int64 `json:"clamped,omitempty"`

	// ExpectedIntervalNs is set on a set corrected for coordinated omission.
	ExpectedIntervalNs int64 `json:"expected_interval_ns,omitempty"`

	// HDR is the histogram, HdrHistogram V2 compressed in base64, as public HdrHistogram tools read it.
	HDR string `json:"hdr,omitempty"`
}

// Percentile is one point of a latency distribution.
type Percentile struct {
	Name    string  // as in the document: "p999"
	Percent float64 // 99.9
	Ns      float64
	TooFew  bool // fewer than 10/(1−q) samples
	AtLeast bool // a lower bound
}

// Text is the percentile in microseconds, with > before a lower bound, and a dash where it rests on too few samples.
func (p Percentile) Text() string {
	if p.TooFew {
		return "-"
	}
	return bounded(view.Usec(p.Ns), p.AtLeast)
}

// Texts are the count and, in microseconds, min, p50 to p99.99, max, mean and deviation, with > before a lower bound.
func (l *Latency) Texts() []string {
	texts := []string{view.Integer(l.Count), view.Usec(l.Min)}
	for _, p := range l.Percentiles()[:5] {
		texts = append(texts, p.Text())
	}
	return append(texts, bounded(view.Usec(l.Max), l.IsBound("max")), bounded(view.Usec(l.Mean), l.IsBound("mean")),
		view.Usec(l.StdDev))
}

func bounded(text string, atLeast bool) string {
	if atLeast {
		return ">" + text
	}
	return text
}

// IsBound tells whether a figure is a lower bound.
func (l *Latency) IsBound(name string) bool { return slices.Contains(l.AtLeast, name) }

func (l *Latency) bound(unfinished, longest int64) {
	if l.Unfinished = unfinished; unfinished == 0 {
		return
	}
	for _, row := range PercentileTable {
		if rank(row.Percent, l.Count) > l.Count-unfinished {
			l.AtLeast = append(l.AtLeast, row.name)
		}
	}
	if float64(longest) >= l.Max {
		l.AtLeast = append(l.AtLeast, "max")
	}
	l.AtLeast = append(l.AtLeast, "mean")
}

type percentileRow struct {
	name    string
	Percent float64
	need    int64
	field   func(*Latency) *float64
}

// PercentileTable lists the percentiles in rising order; need is 10/(1−q), as 1−q is not exact in floating point.
var PercentileTable = []percentileRow{
	{"p50", 50, 20, func(l *Latency) *float64 { return &l.P50 }},
	{"p90", 90, 100, func(l *Latency) *float64 { return &l.P90 }},
	{"p99", 99, 1_000, func(l *Latency) *float64 { return &l.P99 }},
	{"p999", 99.9, 10_000, func(l *Latency) *float64 { return &l.P999 }},
	{"p9999", 99.99, 100_000, func(l *Latency) *float64 { return &l.P9999 }},
	{"p99999", 99.999, 1_000_000, func(l *Latency) *float64 { return &l.P99999 }},
}

// Percentiles returns p50 to p99.999 in rising order.
func (l *Latency) Percentiles() []Percentile {
	ps := make([]Percentile, len(PercentileTable))
	for i, row := range PercentileTable {
		ps[i] = Percentile{row.name, row.Percent, *row.field(l), l.Count < row.need, l.IsBound(row.name)}
	}
	return ps
}

// Histogram decodes HDR; it fails when the document carries none or a broken one.
func (l *Latency) Histogram() (*hdrhistogram.Histogram, error) {
	if l.HDR == "" {
		return nil, errors.New("decode latency histogram: the document carries none")
	}
	h, err := hdrhistogram.Decode([]byte(l.HDR))
	if err != nil {
		return nil, fmt.Errorf("decode latency histogram: %w", err)
	}
	return h, nil
}

// Summarise fills what follows from the histogram. Its percentiles are bucket ends, so they are held inside the exact
// range.
func Summarise(h *hdrhistogram.Histogram, lowest, highest int64) Latency {
	l := Latency{Count: h.TotalCount(), Min: float64(lowest), Max: float64(highest)}
	percents := make([]float64, len(PercentileTable))
	for i, row := range PercentileTable {
		percents[i] = row.Percent
	}
	for i, v := range ValuesAt(h, percents) {
		row := PercentileTable[i]
		*row.field(&l) = float64(min(max(v, lowest), highest))
		if l.Count < row.need {
			l.TooFew = append(l.TooFew, row.name)
		}
	}
	// Encoding goes to memory and has no way to fail; the figures stand without it.
	if hdr, err := h.Encode(hdrhistogram.V2CompressedEncodingCookieBase); err == nil {
		l.HDR = string(hdr)
	}
	return l
}

// rank is which of n samples in rising order, from 1, is the percentile: ceil(q·n), as readers of HdrHistogram files in
// Java, C and JavaScript take it. hdrhistogram-go takes floor(q·n+0.5), which is a sample too early in half of all
// sets.
func rank(percent float64, n int64) int64 {
	// 99.9/100·1000 is above 999 in floating point; HdrHistogram's Java does the same.
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
