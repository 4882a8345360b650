package paramserver

import (
	"fmt"
	"math"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Of is the detail of a training, nil for any other.
func Of(r *reports.Result) *ParamServer { return reports.DetailOf[ParamServer](r) }

// ParamServer is one worker of a training. Iteration is from one end of the backward pass to the next.
type ParamServer struct {
	Model       string  `json:"model"`
	Arm         string  `json:"arm"`    // fifo: all tensors are equal; priority: what is needed first goes first
	Levels      int     `json:"levels"` // of priority in use; 1 where the stack tells none apart
	Tensors     int     `json:"tensors"`
	Parameters  int64   `json:"parameters"`
	TensorBytes float64 `json:"tensor_bytes"` // of one parameter

	// ComputeNs is ComputeRatio times CommunicationNs, the median iteration without computation and priorities.
	ComputeRatio    float64 `json:"compute_ratio"`
	ComputeNs       float64 `json:"compute_ns"`
	CommunicationNs float64 `json:"communication_ns"`

	Iteration reports.Latency `json:"iteration"`
	// MeanLow and MeanHigh are the 95 % confidence interval of the mean by Student's t; 0 for fewer than three.
	MeanLow  float64 `json:"mean_low_ns,omitempty"`
	MeanHigh float64 `json:"mean_high_ns,omitempty"`

	// IdealNs is the longer of computation and communication. Overlap is how much of the shorter it hides, by the
	// median: 1 is all of it; absent where there is nothing to hide.
	IdealNs float64  `json:"ideal_ns"`
	Overlap *float64 `json:"overlap,omitempty"`
}

// Complete fills in what follows from the measured figures; times are those of the single iterations.
func (ps *ParamServer) Complete(times []float64) {
	ps.IdealNs = max(ps.ComputeNs, ps.CommunicationNs)
	if hidden := min(ps.ComputeNs, ps.CommunicationNs); hidden > 0 && ps.Iteration.Count > 0 {
		o := (ps.ComputeNs + ps.CommunicationNs - ps.Iteration.P50) / hidden
		ps.Overlap = &o
	}
	if len(times) >= reports.IntervalRepeats {
		if mi := reports.MeanOf(reports.Figure{}, times); view.Finite(mi.Low) && view.Finite(mi.High) {
			ps.MeanLow, ps.MeanHigh = mi.Low, mi.High
		}
	}
}

// Contradiction is why the figures cannot be; empty where they can.
func (ps *ParamServer) Contradiction() string {
	// A tenth: computation and communication alone are measured in windows of their own.
	if o := ps.Overlap; o != nil && (*o < -0.1 || *o > 1.1) {
		return "the overlap of computation and communication is " + view.Number(100**o, 1) + " %"
	}
	return ""
}

var results = &reports.Workload{
	Name: Name, Title: "Training",
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

func (*ParamServer) Member(string) string { return "param_server" }

func describe(w *reports.Workload, r *reports.Result) {
	ps := Of(r)
	r.Impossible = ps.Contradiction()
	r.Note = fmt.Sprintf("%s parameters in %s, no fusion, pushed by write and pulled by read on one QP, windows of "+
		"%s MiB a side", view.Integer(ps.Parameters), view.Plural(int64(ps.Tensors), "tensor"),
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
