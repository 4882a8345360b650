package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

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

	Iteration Latency `json:"iteration"`
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
	if len(times) >= intervalRepeats {
		if mi := meanInterval(metric{}, times); finite(mi.Low) && finite(mi.High) {
			ps.MeanLow, ps.MeanHigh = mi.Low, mi.High
		}
	}
}

// trainLoad is what results of one training share; arms and ratios stand in one table.
type trainLoad struct {
	model       string
	parameters  int64
	tensors     int
	tensorBytes float64
}

func trainLoadOf(r *Result) trainLoad {
	if r.ParamServer == nil {
		return trainLoad{}
	}
	ps := r.ParamServer
	return trainLoad{ps.Model, ps.Parameters, ps.Tensors, ps.TensorBytes}
}

// trainConditions are those of a table of trainings.
func (l load) trainConditions() string {
	t := l.train
	return fmt.Sprintf("%s: %s parameters in %s of %s bytes a parameter, no fusion, pushed by write and pulled by read on one QP, windows of %s MiB a side, %s polling",
		t.model, integer(t.parameters), plural(int64(t.tensors), "tensor"), number(t.tensorBytes, -1), number(2*float64(t.parameters)*t.tensorBytes/(1<<20), 1), l.polling)
}

func trainMetric(name string, q quantity, of func(ps *ParamServer) (float64, bool)) metric {
	return metric{name, q, func(r *Result) (float64, bool) {
		if r.ParamServer == nil {
			return 0, false
		}
		return of(r.ParamServer)
	}}
}

func (ps *ParamServer) overlap() (float64, bool) {
	if ps.Overlap == nil {
		return 0, false
	}
	return *ps.Overlap, true
}

// point tells the points of one training apart, repeats aside.
func (ps *ParamServer) point() string {
	return ps.Arm + " at ratio " + number(ps.ComputeRatio, -1)
}

// medianTraining has the medians of the repeats.
func medianTraining(all []*Result, iteration *Latency) *ParamServer {
	of := func(figure func(ps *ParamServer) float64) float64 {
		values := make([]float64, len(all))
		for i, r := range all {
			values[i] = figure(r.ParamServer)
		}
		return median(values)
	}
	ps := *all[0].ParamServer
	ps.Iteration, ps.MeanLow, ps.MeanHigh, ps.Overlap = *iteration, 0, 0, nil
	ps.ComputeNs = of(func(ps *ParamServer) float64 { return ps.ComputeNs })
	ps.CommunicationNs = of(func(ps *ParamServer) float64 { return ps.CommunicationNs })
	ps.Complete(nil)
	return &ps
}

// fasterThanFIFO is how many times shorter the median iteration is than in the arm fifo of
// the same stack and ratio.
func fasterThanFIFO(ps *ParamServer, all []*ParamServer) string {
	for _, other := range all {
		if other.Arm == "fifo" && other.ComputeRatio == ps.ComputeRatio {
			return ratio(other.Iteration.P50, ps.Iteration.P50)
		}
	}
	return "-"
}

func msec(ns float64) string { return number(ns/1e6, 3) }

// trainTable shows the iterations of a training against its parts.
func (p *textPrinter) trainTable(results []*Result) {
	t := table{columns: []column{{name: "ratio"}, {name: "arm", left: true}, {name: "levels"}, {name: "#iterations"},
		{name: "mean", unit: "ms"}, {name: "+/-", unit: "ms"}, {name: "p50", unit: "ms"}, {name: "99%", unit: "ms"},
		{name: "comm", unit: "ms"}, {name: "comp", unit: "ms"}, {name: "ideal", unit: "ms"}, {name: "overlap"}, {name: "gain"}}}
	var all []*ParamServer
	for _, r := range results {
		if r.ParamServer != nil {
			all = append(all, r.ParamServer)
		}
	}
	if len(all) == 0 {
		return
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *ParamServer) int { return cmp.Compare(a.ComputeRatio, b.ComputeRatio) })
	for _, ps := range sorted {
		interval, overlap := "-", "-"
		if ps.MeanHigh > ps.MeanLow {
			interval = msec((ps.MeanHigh - ps.MeanLow) / 2)
		}
		if o, ok := ps.overlap(); ok {
			overlap = number(o*100, 1) + " %"
		}
		p50, p99 := percentileCell(&ps.Iteration, "p50"), percentileCell(&ps.Iteration, "p99")
		p50.text, p99.text = msec(ps.Iteration.P50), msec(ps.Iteration.P99)
		t.add(cell{text: number(ps.ComputeRatio, -1)}, cell{text: printable(ps.Arm)}, cell{text: strconv.Itoa(ps.Levels)}, cell{text: integer(ps.Iteration.Count)},
			cell{text: msec(ps.Iteration.Mean)}, cell{text: interval}, p50, p99, cell{text: msec(ps.CommunicationNs)}, cell{text: msec(ps.ComputeNs)},
			cell{text: msec(ps.IdealNs)}, cell{text: overlap}, cell{text: fasterThanFIFO(ps, all)})
	}
	p.wrapped("an iteration beside its communication alone, its computation alone and the longer of both; overlap is how much of the shorter is hidden, gain how many times shorter than fifo, both by the median:")
	p.table(&t)
}
