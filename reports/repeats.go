package reports

import (
	"encoding/json"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

const (
	confidence = 0.95

	// IntervalRepeats is the fewest repeats that get an interval: of two, Student's factor is 12.7.
	IntervalRepeats = 3

	// IntervalMethod says how the intervals come about.
	IntervalMethod = "percentiles: the median's, by order statistics; others: the mean's, by Student's t, held at zero"

	methodOrder   = "order statistics of the median"
	methodStudent = "Student's t of the mean, held at zero"
)

// RepeatSummary is what the repeats of one point say together.
type RepeatSummary struct {
	Stack     string  `json:"stack"`
	Workload  string  `json:"workload"`
	Op        string  `json:"op"`
	SizeBytes int64   `json:"size_bytes"`
	QPs       int     `json:"qps"`
	Rate      float64 `json:"rate,omitempty"` // of an open loop

	// Variant has the dimensions of the point, as members of the summary: arm, model, mix…
	Variant Members `json:"variant,omitempty"`

	Results []int `json:"results"` // the repeats: indexes of Document.Results
	N       int   `json:"n"`       // how many

	// Figures are the means and medians over the repeats with their intervals; Absent says why there are none.
	// Confidence is what is asked for; a figure says its own where few repeats give less.
	Method     string         `json:"method,omitempty"`
	Confidence float64        `json:"confidence,omitempty"`
	Figures    []MeanInterval `json:"figures,omitempty"`
	Absent     string         `json:"absent,omitempty"`
}

// MarshalJSON puts the members of the variant among those of the summary.
func (s RepeatSummary) MarshalJSON() ([]byte, error) {
	type plain RepeatSummary // without this method
	return inline(plain(s), "variant", s.Variant)
}

// UnmarshalJSON takes what it does not know for the variant.
func (s *RepeatSummary) UnmarshalJSON(b []byte) (err error) {
	type plain RepeatSummary
	s.Variant, err = outline(b, (*plain)(s))
	return err
}

// MeanInterval is one figure over repeats. Of a percentile, Low and High are repeats themselves, which hold its median
// with the probability Confidence (order statistics; David and Nagaraja, Order Statistics, 3rd ed., 7.1). Of another
// figure they are Student's around Mean, cut off at zero.
type MeanInterval struct {
	Figure string   `json:"figure"` // as in thresholds: p50, rate, …
	Unit   string   `json:"unit"`
	Mean   float64  `json:"mean"`
	Median *float64 `json:"median,omitempty"` // of a percentile: what the interval is of
	Low    float64  `json:"low"`
	High   float64  `json:"high"`

	Method     string  `json:"method,omitempty"`
	Confidence float64 `json:"confidence,omitempty"`
}

// Center is what the interval is of: the median of a percentile, else the mean.
func (m MeanInterval) Center() float64 {
	if m.Median != nil {
		return *m.Median
	}
	return m.Mean
}

// Quantity is what the figure counts.
func (m MeanInterval) Quantity() Quantity { return quantityOf(m.Unit) }

// SummariseRepeats makes one summary for each point that was measured several times. The results are only read.
func SummariseRepeats(results []Result) []RepeatSummary {
	index := make(map[*Result]int, len(results))
	for i, r := range Pointers(results) {
		index[r] = i
	}
	var out []RepeatSummary
	for _, g := range GroupResults(results, nil) {
		_, sets := RepeatSets(g.Results)
		for _, set := range sets {
			if len(set.Samples) < 2 {
				continue
			}
			first := set.Samples[0]
			s := RepeatSummary{Stack: first.Stack, Workload: first.Workload, Op: first.Op, SizeBytes: first.SizeBytes,
				QPs: first.QPs, Rate: first.Rate, N: len(set.Samples), Variant: dimMembers(first.Dims)}
			for _, r := range set.Samples {
				s.Results = append(s.Results, index[r])
			}
			if s.N < IntervalRepeats {
				s.Absent = TooFewRepeats(s.N)
			} else {
				s.Method, s.Confidence, s.Figures = IntervalMethod, confidence, MeanIntervals(set.Samples)
			}
			out = append(out, s)
		}
	}
	return out
}

func dimMembers(dims []Dim) (m Members) {
	for _, d := range dims {
		if json.Valid([]byte(d.Value)) {
			m = m.With(d.Name, json.RawMessage(d.Value))
		} else {
			m = m.With(d.Name, d.Value)
		}
	}
	return m
}

// TooFewRepeats says why n repeats have no interval.
func TooFewRepeats(n int) string {
	return "no confidence interval from " + view.Plural(int64(n), "repeat") + ": it takes " +
		view.Integer(IntervalRepeats)
}

// intervalFigures are around those of the workload.
var intervalFigures = [2][]string{{"p50", "mean", "p99"}, {"bw", "rate"}}

// MeanIntervals are those of the figures that every repeat has.
func MeanIntervals(repeats []*Result) []MeanInterval {
	var out []MeanInterval
	for _, name := range repeats[0].shownWith(intervalFigures, nil) {
		m, _ := repeats[0].Find(name)
		v := values(name, repeats)
		if len(v) < len(repeats) {
			continue
		}
		// Figures of a broken file may be too large for their squares.
		if mi := MeanOf(m, v); view.Finite(mi.Mean) && view.Finite(mi.Low) && view.Finite(mi.High) {
			out = append(out, mi)
		}
	}
	return out
}

// MeanOf takes at least two values: of a percentile the interval of the median, else of the mean.
func MeanOf(m Figure, v []float64) MeanInterval {
	mean := benchmath.AssumeNormal.Summary(benchmath.NewSample(slices.Clone(v), &benchmath.DefaultThresholds),
		confidence)
	mi := MeanInterval{Figure: m.Name, Unit: m.Unit(), Mean: mean.Center}
	if !isPercentile(m.Name) {
		mi.Low, mi.High, mi.Method, mi.Confidence = max(mean.Lo, 0), mean.Hi, methodStudent, confidence
		return mi
	}
	sorted := slices.Sorted(slices.Values(v))
	n := len(sorted)
	median := (sorted[(n-1)/2] + sorted[n/2]) / 2
	k, covered := MedianRanks(n, confidence)
	mi.Median, mi.Low, mi.High, mi.Method, mi.Confidence = &median, sorted[k], sorted[n-1-k], methodOrder, covered
	return mi
}

func isPercentile(name string) bool {
	_, last := SplitFigure(name)
	return len(last) > 1 && last[0] == 'p' && strings.Trim(last[1:], "0123456789") == ""
}

// MedianRanks is how many of n values in order can be cut off at either end so that the rest holds their median with
// that confidence, and the confidence that it has. Where even the whole range falls short, nothing is cut off.
func MedianRanks(n int, confidence float64) (cut int, covered float64) {
	all, _ := math.Lgamma(float64(n + 1))
	outside := 0. // the chance that at most i of n are below the median: an interval from i+1 on misses that on each side
	for i := range n/2 + 1 {
		below, _ := math.Lgamma(float64(i + 1))
		above, _ := math.Lgamma(float64(n - i + 1))
		outside += math.Exp(all - below - above - float64(n)*math.Ln2)
		c := 1 - 2*outside
		if i > 0 && c < confidence {
			break
		}
		cut, covered = i, c
	}
	return cut, covered
}

// RepeatPoint is what the repeats of one point share; only results with the same parts have medians.
type RepeatPoint struct {
	size int64
	rate float64
	qps  int
	dims string

	Latency, Throughput bool
}

// RepeatSets sorts the results of a group into points with their repeats in order; singles are no repeats.
func RepeatSets(results []*Result) (singles []*Result, sets []*GroupOf[RepeatPoint, *Result]) {
	sets = GroupBy(results, func(r *Result) (RepeatPoint, bool) {
		if r.Repeat == 0 {
			singles = append(singles, r)
		}
		return RepeatPoint{r.SizeBytes, r.Rate, r.QPs, DimsText(r.Dims, ","), r.Latency != nil, r.Throughput != nil},
			r.Repeat != 0
	})
	return singles, sets
}
