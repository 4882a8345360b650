package reports

import (
	"slices"

	"golang.org/x/perf/benchmath"
)

const (
	// confidence is the level of the intervals over repeats.
	confidence = 0.95

	// intervalRepeats is the fewest repeats that get an interval. Two leave one
	// degree of freedom, where Student's factor is 12.7: such an interval says
	// nothing, and looks as if it did.
	intervalRepeats = 3

	intervalMethod = "Student's t, two-sided"
)

// RepeatSummary is what the repeats of one point say together.
type RepeatSummary struct {
	Stack     string  `json:"stack"`
	Workload  string  `json:"workload"`
	Op        string  `json:"op"`
	SizeBytes int64   `json:"size_bytes"`
	QPs       int     `json:"qps"`
	Rate      float64 `json:"rate,omitempty"` // of an open loop
	Arm       string  `json:"arm,omitempty"`  // of a head-of-line measurement and of a training

	Model        string   `json:"model,omitempty"` // of a training
	ComputeRatio *float64 `json:"compute_ratio,omitempty"`

	HighLoadPercent *float64 `json:"high_load_percent,omitempty"` // of two classes

	Call string `json:"call,omitempty"` // of a workload of calls
	Mix  string `json:"mix,omitempty"`  // of YCSB

	Results []int `json:"results"` // the repeats: indexes of Document.Results
	N       int   `json:"n"`       // how many

	// Figures are the means over the repeats with their confidence intervals. With
	// fewer than three repeats there are none, and Absent says so.
	Method     string         `json:"method,omitempty"`
	Confidence float64        `json:"confidence,omitempty"`
	Figures    []MeanInterval `json:"figures,omitempty"`
	Absent     string         `json:"absent,omitempty"`
}

// MeanInterval is one figure's mean over repeats: if they were drawn from one
// normal distribution, intervals made like this would hold its mean in 95 of 100
// runs. The middle of Low and High is Mean; Low may be below zero.
type MeanInterval struct {
	Figure string  `json:"figure"` // as in thresholds: p50, rate, …
	Unit   string  `json:"unit"`
	Mean   float64 `json:"mean"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
}

// quantity is what the figure counts.
func (m MeanInterval) quantity() quantity {
	of, _ := findMetric(m.Figure)
	return of.quantity
}

// halfWidth is the distance from the mean to either end.
func (m MeanInterval) halfWidth() float64 { return (m.High - m.Low) / 2 }

// SummariseRepeats makes one summary for each point that was measured several
// times, in the order of the results, which are only read.
func SummariseRepeats(results []Result) []RepeatSummary {
	index := make(map[*Result]int, len(results))
	for i := range results {
		index[&results[i]] = i
	}
	var out []RepeatSummary
	for _, g := range groupResults(results, nil) {
		_, sets := repeatSets(g.results)
		for _, set := range sets {
			if len(set.results) < 2 {
				continue
			}
			first := set.results[0]
			s := RepeatSummary{Stack: first.Stack, Workload: first.Workload, Op: first.Op, SizeBytes: set.size, QPs: set.qps, Rate: set.rate, N: len(set.results)}
			if first.HOL != nil {
				s.Arm = first.HOL.Arm
			}
			if first.Starvation != nil {
				s.HighLoadPercent = &first.Starvation.HighLoadPercent
			}
			if first.RPC != nil {
				s.Call = first.RPC.Call
			}
			if first.KV != nil {
				s.Mix = first.KV.Mix
			}
			if ps := first.ParamServer; ps != nil {
				s.Arm, s.Model, s.ComputeRatio = ps.Arm, ps.Model, &ps.ComputeRatio
			}
			for _, r := range set.results {
				s.Results = append(s.Results, index[r])
			}
			if s.N < intervalRepeats {
				s.Absent = tooFewRepeats(s.N)
			} else {
				s.Method, s.Confidence, s.Figures = intervalMethod, confidence, meanIntervals(set.results)
			}
			out = append(out, s)
		}
	}
	return out
}

func tooFewRepeats(n int) string {
	return "no confidence interval from " + plural(int64(n), "repeat") + ": it takes " + integer(intervalRepeats)
}

// intervalFigures are those that repeats get intervals for, where a result has them.
var intervalFigures = []string{"p50", "mean", "p99", "alone.p50", "alone.mean", "alone.p99", "loaded.p50", "loaded.mean", "loaded.p99",
	"alone.bw", "loaded.bw", "from_client.bw", "from_server.bw", "slowest.bw", "jain", "iteration.p50", "iteration.mean", "iteration.p99", "overlap", "high.bw", "low.bw", "bw", "rate"}

// meanIntervals are those of the figures that every repeat has.
func meanIntervals(repeats []*Result) []MeanInterval {
	var out []MeanInterval
	for _, name := range intervalFigures {
		m, _ := findMetric(name)
		v := values(m, repeats)
		if len(v) < len(repeats) {
			continue
		}
		// Figures of a broken file may be too large for their squares.
		if mi := meanInterval(m, v); finite(mi.Mean) && finite(mi.Low) && finite(mi.High) {
			out = append(out, mi)
		}
	}
	return out
}

// meanInterval takes at least two values.
func meanInterval(m metric, v []float64) MeanInterval {
	s := benchmath.AssumeNormal.Summary(benchmath.NewSample(slices.Clone(v), &benchmath.DefaultThresholds), confidence)
	return MeanInterval{Figure: m.name, Unit: quantityUnits[m.quantity], Mean: s.Center, Low: s.Lo, High: s.Hi}
}

// repeatPoint is what the repeats of one point in a group share. Only results
// with the same parts have medians and means.
type repeatPoint struct {
	size int64
	rate float64
	qps  int
	arm  string

	latency, throughput, bothWays bool
}

// repeatSet is the repeats of one point, in order.
type repeatSet struct {
	repeatPoint
	results []*Result
}

// repeatSets sorts the results of a group into points; those that are no repeats
// come back by themselves.
func repeatSets(results []*Result) (singles []*Result, sets []*repeatSet) {
	index := map[repeatPoint]*repeatSet{}
	for _, r := range results {
		if r.Repeat == 0 {
			singles = append(singles, r)
			continue
		}
		k := repeatPoint{size: r.SizeBytes, rate: r.Rate, qps: r.QPs, latency: r.Latency != nil, throughput: r.Throughput != nil, bothWays: r.Bidirectional != nil}
		if r.HOL != nil {
			k.arm = "arm " + r.HOL.Arm
		}
		if r.Starvation != nil {
			k.arm = r.Starvation.point()
		}
		if r.ParamServer != nil {
			k.arm = r.ParamServer.point()
		}
		if index[k] == nil {
			index[k] = &repeatSet{repeatPoint: k}
			sets = append(sets, index[k])
		}
		index[k].results = append(index[k].results, r)
	}
	return singles, sets
}
