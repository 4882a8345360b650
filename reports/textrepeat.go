package reports

import (
	"slices"
	"strings"
)

// collapse makes one result of the repeats of each point of a group: every figure
// is the median over the repeats, except that minimum and maximum are the true ones.
// Results that are no repeats stay as they are. The notes say how far the repeats lie
// apart, which is what a difference between two runs has to exceed.
func (g *groupedResults) collapse() (rows []*Result, notes []string) {
	rows, sets := repeatSets(g.results)
	for _, k := range sets {
		all := k.results
		rows = append(rows, medianResult(all))
		if len(all) < 2 {
			continue
		}
		name := g.rowName(all[0])
		if k.arm != "" && all[0].ParamServer == nil && all[0].Starvation == nil {
			name += " " + printable(k.arm)
		}
		note := name + ": medians of " + plural(int64(len(all)), "repeat") + "; " + strings.Join(spreads(all), ", ")
		if len(all) < intervalRepeats {
			note += "; " + tooFewRepeats(len(all))
		}
		notes = append(notes, note)
	}
	return rows, notes
}

// spreads says for the main figures how far the repeats lie apart, in percent of
// their median.
func spreads(all []*Result) []string {
	var out []string
	add := func(name string, of func(r *Result) float64) {
		values := make([]float64, len(all))
		for i, r := range all {
			values[i] = of(r)
		}
		m := median(values)
		s := "-"
		if m > 0 {
			s = number((slices.Max(values)-slices.Min(values))/m*100, 1) + " %"
		}
		out = append(out, name+" spread "+s)
	}
	switch first := all[0]; {
	case first.HOL != nil:
		add("loaded p50", func(r *Result) float64 { return r.HOL.ProbeLoaded.P50 })
		add("loaded 99%", func(r *Result) float64 { return r.HOL.ProbeLoaded.P99 })
	case first.Starvation != nil:
		add("low BW", func(r *Result) float64 { return r.Starvation.Low.BytesPerSecond })
	case first.ParamServer != nil:
		add("mean iteration", func(r *Result) float64 { return r.ParamServer.Iteration.Mean })
	case first.Latency != nil:
		add("p50", func(r *Result) float64 { return r.Latency.P50 })
		add("99%", func(r *Result) float64 { return r.Latency.P99 })
	case first.Throughput != nil:
		add("BW", func(r *Result) float64 { return r.Throughput.BytesPerSecond })
	}
	return out
}

// medianResult has the medians of results that have the same parts.
func medianResult(all []*Result) *Result {
	r := *all[0]
	of := func(field func(r *Result) float64) float64 {
		values := make([]float64, len(all))
		for i := range all {
			values[i] = field(all[i])
		}
		return median(values)
	}
	r.Operations = int64(of(func(r *Result) float64 { return float64(r.Operations) }))
	r.DurationNs = int64(of(func(r *Result) float64 { return float64(r.DurationNs) }))
	latency := func(field func(r *Result) *Latency) *Latency {
		var ls []*Latency
		for _, r := range all {
			if l := field(r); l != nil {
				ls = append(ls, l)
			}
		}
		return medianLatency(ls)
	}
	r.Latency = latency(func(r *Result) *Latency { return r.Latency })
	r.LatencyCorrected = latency(func(r *Result) *Latency { return r.LatencyCorrected })
	r.LatencyService = latency(func(r *Result) *Latency { return r.LatencyService })
	if r.Throughput != nil {
		r.Throughput = &Throughput{BytesPerSecond: of(func(r *Result) float64 { return r.Throughput.BytesPerSecond }),
			OperationsPerSecond: of(func(r *Result) float64 { return r.Throughput.OperationsPerSecond })} // no peak: it has no median
	}
	if r.Connect != nil {
		r.Connect = medianConnect(all)
	}
	if r.KV != nil {
		r.KV = medianKV(all)
	}
	if r.Starvation != nil {
		r.Starvation = medianStarvation(all)
	}
	if r.ParamServer != nil {
		r.ParamServer = medianTraining(all, latency(func(r *Result) *Latency { return &r.ParamServer.Iteration }))
	}
	if r.Incast != nil {
		r.Incast = medianIncast(all)
	}
	if r.Bidirectional != nil {
		r.Bidirectional = medianDirections(all)
	}
	if r.HOL != nil {
		h := *r.HOL
		h.ProbeAlone = *latency(func(r *Result) *Latency { return &r.HOL.ProbeAlone })
		h.ProbeLoaded = *latency(func(r *Result) *Latency { return &r.HOL.ProbeLoaded })
		h.BulkAloneBytesPerSecond = of(func(r *Result) float64 { return r.HOL.BulkAloneBytesPerSecond })
		h.BulkLoadedBytesPerSecond = of(func(r *Result) float64 { return r.HOL.BulkLoadedBytesPerSecond })
		r.HOL = &h
	}
	return &r
}

// medianLatency is nil for none. Count is the smallest, so that a percentile is
// marked when it is in any repeat.
func medianLatency(all []*Latency) *Latency {
	if len(all) == 0 {
		return nil
	}
	m := *all[0]
	m.HDR, m.TooFew = "", nil
	of := func(field func(l *Latency) *float64) float64 {
		values := make([]float64, len(all))
		for i := range all {
			values[i] = *field(all[i])
		}
		return median(values)
	}
	for _, row := range percentileTable {
		*row.field(&m) = of(row.field)
	}
	m.Mean = of(func(l *Latency) *float64 { return &l.Mean })
	m.StdDev = of(func(l *Latency) *float64 { return &l.StdDev })
	for _, l := range all {
		m.Count, m.Min, m.Max = min(m.Count, l.Count), min(m.Min, l.Min), max(m.Max, l.Max)
	}
	return &m
}
