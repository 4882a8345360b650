package reports

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Median of at least one value; of an even number, the mean of the middle two.
func Median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return math.NaN()
	}
	return v[(len(v)-1)/2]/2 + v[len(v)/2]/2 // halves first: two large values must not overflow
}

// Collapse makes one result of the repeats of each point: medians, but the true minimum and maximum. Other results stay
// as they are. The notes say how far the repeats lie apart.
func (g *Grouped) Collapse() (rows []*Result, notes []string) {
	rows, sets := RepeatSets(g.Results)
	for _, k := range sets {
		all := k.Samples
		rows = append(rows, medianResult(all))
		if len(all) < 2 {
			continue
		}
		name := g.RowName(all[0])
		note := name + ": medians of " + view.Plural(int64(len(all)), "repeat")
		if apart := spreads(all); len(apart) > 0 {
			note += "; " + strings.Join(apart, ", ")
		}
		if len(all) < IntervalRepeats {
			note += "; " + TooFewRepeats(len(all))
		}
		notes = append(notes, note)
	}
	return rows, notes
}

// MedianSamples is Collapse for the samples of a page, by size and then in the order of series. They are only read.
func MedianSamples(samples []*Measured) []*Measured {
	var out []*Measured
	for _, b := range Split(samples) {
		of := map[*Result]*Measured{}
		for _, s := range b.Runs {
			of[s.Result] = s
		}
		singles, sets := RepeatSets(ResultsOf(b.Runs))
		for _, r := range singles {
			out = append(out, of[r])
		}
		for _, set := range sets {
			s := *of[set.Samples[0]]
			s.Result = medianResult(set.Samples)
			s.Repeat = 0
			out = append(out, &s)
		}
	}
	slices.SortStableFunc(out, func(a, b *Measured) int { return cmp.Compare(a.SizeBytes, b.SizeBytes) })
	return out
}

// spreads says for the main figures how far the repeats lie apart, in percent of their median.
func spreads(all []*Result) (out []string) {
	const most = 2
	for _, f := range all[0].ShownFigures() {
		if f.Better == Neither || len(out) == most || strings.HasSuffix(f.Name, "mean") {
			continue
		}
		values, s := view.Each(all, func(r *Result) float64 { v, _ := r.Figure(f.Name); return v }), "-"
		if m := Median(values); m > 0 {
			s = view.Number((slices.Max(values)-slices.Min(values))/m*100, 1) + " %"
		}
		if f.Name == "bw" {
			return append(out, "BW spread "+s) // the rate is the same spread
		}
		out = append(out, f.Name+" spread "+s)
	}
	return out
}

func medianResult(all []*Result) *Result {
	r := *all[0]
	of := func(field func(r *Result) float64) float64 { return MedianOf(all, field) }
	r.Operations = int64(of(func(r *Result) float64 { return float64(r.Operations) }))
	r.DurationNs = int64(of(func(r *Result) float64 { return float64(r.DurationNs) }))
	latency := func(field func(r *Result) *Latency) *Latency { return MedianLatency(parts(all, field)) }
	r.Latency = latency(func(r *Result) *Latency { return r.Latency })
	r.LatencyCorrected = latency(func(r *Result) *Latency { return r.LatencyCorrected })
	r.LatencyService = latency(func(r *Result) *Latency { return r.LatencyService })
	if r.Throughput != nil {
		r.Throughput = &Throughput{BytesPerSecond: of(func(r *Result) float64 { return r.Throughput.BytesPerSecond }),
			// no peak: it has no median
			OperationsPerSecond: of(func(r *Result) float64 { return r.Throughput.OperationsPerSecond })}
	}
	if r.OpenLoop != nil {
		r.OpenLoop = MedianLoop(parts(all, func(r *Result) *OpenLoop { return r.OpenLoop }))
	}
	r.Latencies, r.Figures = slices.Clone(r.Latencies), nil
	for i, l := range r.Latencies {
		r.Latencies[i].Latency = latency(func(r *Result) *Latency { return r.distribution(l.Name) })
	}
	for _, f := range all[0].Figures {
		if f.Value = Median(values(f.Name, all)); view.Finite(f.Value) {
			r.Figures = append(r.Figures, f)
		}
	}
	return &r
}

func parts[T any](all []*Result, of func(r *Result) *T) []*T {
	return view.Only(view.Each(all, of), func(p *T) bool { return p != nil })
}

// MedianLoop has the medians of the loops, and is saturated if any is; nil for none.
func MedianLoop(loops []*OpenLoop) *OpenLoop {
	if len(loops) == 0 || slices.Contains(loops, nil) {
		return nil
	}
	whole := func(field func(o *OpenLoop) int64) int64 {
		return int64(MedianOf(loops, func(o *OpenLoop) float64 { return float64(field(o)) }))
	}
	return &OpenLoop{
		Due:               whole(func(o *OpenLoop) int64 { return o.Due }),
		Sent:              whole(func(o *OpenLoop) int64 { return o.Sent }),
		Completed:         whole(func(o *OpenLoop) int64 { return o.Completed }),
		Late:              whole(func(o *OpenLoop) int64 { return o.Late }),
		OfferedPerSecond:  loops[0].OfferedPerSecond,
		AchievedPerSecond: MedianOf(loops, func(o *OpenLoop) float64 { return o.AchievedPerSecond }),
		Saturated:         slices.ContainsFunc(loops, func(o *OpenLoop) bool { return o.Saturated }),
	}
}

// MedianLatency is nil for none. Count is the smallest, so that a percentile has the marks of any repeat.
func MedianLatency(all []*Latency) *Latency {
	if len(all) == 0 {
		return nil
	}
	m := *all[0]
	m.HDR, m.TooFew, m.AtLeast = "", nil, nil
	for _, row := range PercentileTable {
		*row.field(&m) = MedianOf(all, func(l *Latency) float64 { return *row.field(l) })
	}
	m.Mean = MedianOf(all, func(l *Latency) float64 { return l.Mean })
	m.StdDev = MedianOf(all, func(l *Latency) float64 { return l.StdDev })
	for _, l := range all {
		m.Unfinished = max(m.Unfinished, l.Unfinished)
		for _, name := range l.AtLeast { // of a median, in whichever repeat
			if !m.IsBound(name) {
				m.AtLeast = append(m.AtLeast, name)
			}
		}
		m.Count, m.Min, m.Max = min(m.Count, l.Count), min(m.Min, l.Min), max(m.Max, l.Max)
	}
	return &m
}

// oneSample has one result for the rounds of each point, which share the machine's pace.
func oneSample(results []Result) (out []Result) {
	for _, s := range collectSamples(results) {
		if rounds(s.results) {
			s.results = []*Result{medianResult(s.results)}
			s.results[0].Repeat = 0
		}
		for _, r := range s.results {
			out = append(out, *r)
		}
	}
	return out
}

// Join makes one run of several invocations of the same command, so that Compare takes each as a sample. They must come
// from the same build on the same machine. The first error is the whole run's. The documents are only read.
func Join(docs []*Document) (*Document, error) {
	if len(docs) == 0 {
		return nil, errors.New("join: no document")
	}
	joined := *docs[0]
	joined.Results, joined.Repeats, joined.Answer = nil, nil, nil // the summaries are of one invocation each
	for i, d := range docs {
		c := Comparison{}
		c.environments("", &docs[0].Environment, &d.Environment)
		a, b := docs[0].ServerEnvironment, d.ServerEnvironment
		if a != nil && b != nil {
			c.environments("server ", a, b)
		}
		switch {
		case docs[0].Environment.Version != d.Environment.Version, docs[0].Environment.Go != d.Environment.Go:
			return nil, fmt.Errorf("join: document %d is of rdmaperf %s, %s, the first of %s, %s", i+1,
				view.Printable(d.Environment.Version), view.Printable(d.Environment.Go),
				view.Printable(docs[0].Environment.Version), view.Printable(docs[0].Environment.Go))
		case (a == nil) != (b == nil):
			return nil, fmt.Errorf("join: document %d and the first differ in where the server was", i+1)
		case len(c.Unlike) > 0:
			return nil, fmt.Errorf("join: document %d is not like the first: %s", i+1, c.Unlike[0])
		}
		if joined.Error == nil {
			joined.Error = d.Error
		}
		joined.Results = append(joined.Results, oneSample(d.Results)...)
	}
	return &joined, nil
}
