package results

import (
	"math"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Results declares the dimensions and figures of these results.
var Results = &reports.Workload{
	Name: "hol", Title: "Head-of-line blocking",
	Intro: "Small probes, first alone, then under load of a bulk stream; a gain is how many times lower a latency is " +
		"than behind the bulk on the one queue pair of the bare stack.",
	Dims: []reports.DimDef{
		{Name: "arm", Help: "how probes and bulk share queue pairs"},
		{Name: "bulk_size_bytes", Unit: "B", Help: "a message of the bulk stream"},
		{Name: "probe_size_bytes", Unit: "B", Help: "a probe"},
		{Name: "probe_interval_ns", Unit: "ns", Help: "between the intended starts of two probes"},
		{Name: "probe_gap_ns", Unit: "ns", Help: "least time between two probes, one at a time"},
		{Name: "app_slice_bytes", Unit: "B", Help: "into which the application cuts the bulk"},
		{Name: "app_window", Help: "slices that the application keeps outstanding"},
	},
	Latencies: []reports.DimDef{{Name: "alone", Help: "probes alone"},
		{Name: "loaded", Help: "probes under load"}},
	Figures: []reports.FigureDef{
		{Name: "alone.bw", Quantity: reports.QuantityBytes, Better: reports.More, Help: "bulk alone"},
		{Name: "loaded.bw", Quantity: reports.QuantityBytes, Better: reports.More, Help: "bulk with probes"},
		{Name: "growth.p50", Quantity: reports.QuantityRatio,
			Help: "median of the probes under load over that alone"},
		{Name: "growth.p99", Quantity: reports.QuantityRatio,
			Help: "p99 of the probes under load over that alone"},
		{Name: "cpu.gb", Quantity: reports.QuantityTime, Help: "processor time of both sides for 10^9 bytes of bulk"},
		{Name: "cpu.op", Quantity: reports.QuantityTime,
			Help: "processor time of both sides for a bulk message or probe"},
		{Name: "alone.due", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "probes alone that were due"},
		{Name: "alone.sent", Quantity: reports.QuantityCount, Better: reports.Neither, Help: "of these, sent"},
		{Name: "alone.completed", Quantity: reports.QuantityCount, Better: reports.Neither, Help: "of these, answered"},
		{Name: "alone.achieved", Quantity: reports.QuantityRate, Better: reports.More,
			Help: "answered over the window"},
		{Name: "alone.saturated", Quantity: reports.QuantityCount,
			Help: "1 where the path did not keep up with the probes"},
		{Name: "loaded.due", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "probes under load that were due"},
		{Name: "loaded.sent", Quantity: reports.QuantityCount, Better: reports.Neither, Help: "of these, sent"},
		{Name: "loaded.completed", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "of these, answered"},
		{Name: "loaded.achieved", Quantity: reports.QuantityRate, Better: reports.More,
			Help: "answered over the window"},
		{Name: "loaded.saturated", Quantity: reports.QuantityCount,
			Help: "1 where the path did not keep up with the probes"},
	},
	Shown: []string{"loaded.p50", "loaded.mean", "loaded.p99", "alone.p50", "alone.mean", "alone.p99", "loaded.bw",
		"alone.bw", "growth.p50", "growth.p99", "cpu.gb", "cpu.op"},
	Detail:   func() reports.Detail { return new(HOL) },
	Describe: describe,
}

// Member implements reports.Detail.
func (*HOL) Member(string) string { return "hol" }

func describe(w *reports.Workload, r *reports.Result) {
	h := Of(r)
	r.Impossible = h.Contradiction()
	r.Dims = reports.DimsOf(w.Dims, h.arm(), reports.NotZero(h.BulkSizeBytes), reports.NotZero(h.ProbeSizeBytes),
		reports.NotZero(h.ProbeIntervalNs), reports.NotZero(h.ProbeGapNs),
		reports.NotZero(h.AppSliceBytes), reports.NotZero(h.AppWindow))
	r.Latencies = reports.LatenciesOf(w.Latencies, &h.ProbeAlone, &h.ProbeLoaded)
	for i := range r.Latencies {
		r.Latencies[i].SizeBytes = h.ProbeSizeBytes
	}
	values := []float64{h.BulkAloneBytesPerSecond, h.BulkLoadedBytesPerSecond,
		h.growth(0), h.growth(2),
		known(cpuPerGB(r) * 1e9), known(cpuPerOp(r) * 1e9)}
	for _, o := range []*reports.OpenLoop{h.AloneLoop, h.LoadedLoop} {
		values = append(values, o.Figures()...)
	}
	r.Figures = reports.FiguresOf(w.Figures, values...)
}

// known is no number for what is not known.
func known(v float64) float64 {
	if v > 0 {
		return v
	}
	return math.NaN()
}

// growth is that of a percentile, by its place among them. It has no number where the percentiles rest on too few
// samples, or where the probes were more than the path sustains: it is then the prober's own backlog.
func (h *HOL) growth(i int) float64 {
	alone, loaded := h.ProbeAlone.Percentiles()[i].Ns, h.ProbeLoaded.Percentiles()[i].Ns
	if h.saturated() || h.few(i) || !(alone > 0) {
		return math.NaN()
	}
	return loaded / alone
}

// few tells whether the percentile rests on too few samples, alone or loaded.
func (h *HOL) few(i int) bool {
	return h.ProbeAlone.Percentiles()[i].TooFew || h.ProbeLoaded.Percentiles()[i].TooFew
}
