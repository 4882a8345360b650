package results

import (
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Of is the detail of a training, nil for any other.
func Of(r *reports.Result) *ParamServer { return reports.DetailOf[ParamServer](r) }

// ParamServer is one worker of a data-parallel training with one parameter server.
// Iteration is the time from one end of the backward pass to the next, in which
// every tensor was pushed and pulled and the layers waited for theirs.
type ParamServer struct {
	Model       string  `json:"model"`
	Arm         string  `json:"arm"`    // fifo: all tensors are equal; priority: what is needed first goes first
	Levels      int     `json:"levels"` // of priority in use; 1 where the stack tells none apart
	Tensors     int     `json:"tensors"`
	Parameters  int64   `json:"parameters"`
	TensorBytes float64 `json:"tensor_bytes"` // of one parameter

	// ComputeNs is the computation of an iteration, ComputeRatio times
	// CommunicationNs: the median iteration without computation and priorities.
	ComputeRatio    float64 `json:"compute_ratio"`
	ComputeNs       float64 `json:"compute_ns"`
	CommunicationNs float64 `json:"communication_ns"`

	Iteration reports.Latency `json:"iteration"`
	// MeanLow and MeanHigh are the ends of the 95 % confidence interval of the mean
	// iteration by Student's t, as if iterations were independent; both 0 for fewer
	// than three.
	MeanLow  float64 `json:"mean_low_ns,omitempty"`
	MeanHigh float64 `json:"mean_high_ns,omitempty"`

	// IdealNs is the longer of computation and communication. Overlap is how much of
	// the shorter hides behind the longer, by the median iteration, which a busy
	// machine moves less than the mean: 1 is all of it, 0 nothing; absent where there
	// is nothing to hide.
	IdealNs float64  `json:"ideal_ns"`
	Overlap *float64 `json:"overlap,omitempty"`
}

// Complete fills in what follows from the measured figures; times are those of the
// single iterations.
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
