package results

import (
	"fmt"
	"math"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Results declares the dimensions and figures of these results.
var Results = &reports.Workload{
	Name: "paramserver", Title: "Training",
	Intro: "An iteration next to its communication alone, its computation alone and the longer of both (ideal). " +
		"Overlap is how much of the shorter is hidden, by the median.",
	Dims: []reports.DimDef{
		{Name: "model", Help: "whose tensors are exchanged"},
		{Name: "arm", Help: "fifo: all tensors are equal; priority: what is needed first goes first"},
		{Name: "compute_ratio", Help: "computation over communication of an iteration"},
		{Name: "tensor_bytes", Unit: "B", Help: "of one parameter"},
		{Name: "levels", Help: "of priority in use; 1 where the stack tells none apart"},
	},
	Latencies: []reports.DimDef{{Name: "iteration", Help: "from one end of the backward pass to the next"}},
	Figures: []reports.FigureDef{
		{Name: "communication", Quantity: reports.QuantityTime,
			Help: "median iteration without computation and priorities"},
		{Name: "computation", Quantity: reports.QuantityTime, Better: reports.Neither, Help: "of an iteration"},
		{Name: "ideal", Quantity: reports.QuantityTime, Help: "the longer of both"},
		{Name: "overlap", Quantity: reports.QuantityRatio, Better: reports.More,
			Help: "how much of the shorter hides behind the longer, by the median iteration"},
		{Name: "iteration.mean_low", Quantity: reports.QuantityTime,
			Help: "lower end of the 95 % confidence interval of the mean iteration"},
		{Name: "iteration.mean_high", Quantity: reports.QuantityTime, Help: "upper end of that interval"},
	},
	Shown: []string{"iteration.p50", "iteration.mean", "iteration.p99", "communication", "computation", "ideal",
		"overlap"},
	Detail:   func() reports.Detail { return new(ParamServer) },
	Describe: describe,
}

// Member implements reports.Detail.
func (*ParamServer) Member(string) string { return "param_server" }

func describe(w *reports.Workload, r *reports.Result) {
	ps := Of(r)
	r.Impossible = ps.Contradiction()
	r.Note = fmt.Sprintf("%s parameters in %s, no fusion, pushed by write and pulled by read on one QP, windows of "+
		"%s MiB a side",
		view.Integer(ps.Parameters), view.Plural(int64(ps.Tensors), "tensor"),
		view.Number(2*float64(ps.Parameters)*ps.TensorBytes/(1<<20), 1))
	r.Dims = reports.DimsOf(w.Dims, ps.Model, ps.Arm, ps.ComputeRatio, ps.TensorBytes, ps.Levels)
	r.Latencies = reports.LatenciesOf(w.Latencies, &ps.Iteration)
	overlap, low, high := math.NaN(), math.NaN(), math.NaN()
	if ps.Overlap != nil {
		overlap = *ps.Overlap
	}
	if ps.MeanHigh > 0 {
		low, high = ps.MeanLow, ps.MeanHigh
	}
	r.Figures = reports.FiguresOf(w.Figures, ps.CommunicationNs, ps.ComputeNs, ps.IdealNs, overlap, low, high)
}
