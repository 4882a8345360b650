package paramserver

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

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

// share is what results of one training share; arms and ratios stand in one table.
type share struct {
	model       string
	parameters  int64
	tensors     int
	tensorBytes float64
}

func shareOf(r *reports.Result) share {
	ps := Of(r)
	return share{ps.Model, ps.Parameters, ps.Tensors, ps.TensorBytes}
}

// conditions are those of a table of trainings.
func conditions(l reports.Load) string {
	t := l.Share.(share)
	return fmt.Sprintf("%s: %s parameters in %s of %s bytes a parameter, no fusion, pushed by write and pulled by read on one QP, windows of %s MiB a side, %s polling",
		t.model, view.Integer(t.parameters), view.Plural(int64(t.tensors), "tensor"), view.Number(t.tensorBytes, -1), view.Number(2*float64(t.parameters)*t.tensorBytes/(1<<20), 1), l.Polling)
}

// Kind describes these results.
var Kind = &reports.Kind{
	Workload:   "paramserver",
	Results:    Results,
	Called:     "Training",
	Share:      func(r *reports.Result) any { return shareOf(r) },
	Conditions: conditions,
	Variant:    func(r *reports.Result) string { return Of(r).point() },
	NamesRows:  true,
	Arm:        func(r *reports.Result) string { return view.Visible(Of(r).Arm) },
	Shape:      func(r *reports.Result) string { return view.Visible(Of(r).point()) },
	Contradiction: func(r *reports.Result) string {
		// A tenth: computation and communication alone are measured in windows of their own.
		if o := Of(r).Overlap; o != nil && (*o < -0.1 || *o > 1.1) {
			return "the overlap of computation and communication is " + view.Number(100**o, 1) + " %"
		}
		return ""
	},
	Medians: medians,
	Spreads: []reports.Spread{{Name: "mean iteration", Of: func(r *reports.Result) float64 { return Of(r).Iteration.Mean }}},
	Interval: &reports.IntervalForm{Of: "ratio",
		Columns: func(view.Units) []view.Column { return reports.IntervalTimes },
		Rows: func(r *reports.Result) []reports.IntervalRow {
			return []reports.IntervalRow{{Arm: Of(r).Arm, Of: view.Number(Of(r).ComputeRatio, -1), Figures: []string{"iteration.p50", "iteration.mean", "iteration.p99"}}}
		}},
	OwnTable: true,
	Tables:   tables,
	Sections: []*reports.PageSection{{Rank: 20, Of: section}},
	Card: &reports.CardKind{Rank: 20,
		Has:    func(s *reports.Measured) bool { return Of(s.Result).Iteration.Count > 0 },
		Figure: func(s *reports.Measured) float64 { return Of(s.Result).Iteration.P50 },
		Kicker: func(k reports.Condition) string {
			return fmt.Sprintf("Iteration of %s · %s", view.Visible(k.Share.(share).model), k.Extra)
		},
		Note: func([]*reports.Measured) string { return "" },
	},
}

func iterationOf(r *reports.Result) *reports.Latency {
	if ps := Of(r); ps != nil {
		return &ps.Iteration
	}
	return nil
}

func (ps *ParamServer) overlap() (float64, bool) {
	if ps.Overlap == nil {
		return 0, false
	}
	return *ps.Overlap, true
}

// point tells the points of one training apart, repeats aside.
func (ps *ParamServer) point() string {
	return ps.Arm + " at ratio " + view.Number(ps.ComputeRatio, -1)
}

// medians has the medians of the repeats.
func medians(all []*reports.Result) any {
	of := func(figure func(ps *ParamServer) float64) float64 {
		return reports.MedianOver(all, func(r *reports.Result) float64 { return figure(Of(r)) })
	}
	ps := *Of(all[0])
	ps.Iteration, ps.MeanLow, ps.MeanHigh, ps.Overlap = *reports.MedianLatencies(all, iterationOf), 0, 0, nil
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
			return view.Ratio(other.Iteration.P50, ps.Iteration.P50)
		}
	}
	return "-"
}

// tables show the iterations of a training against its parts.
func tables(_ *reports.Grouped, results []*reports.Result, _ view.Units) []reports.Block {
	t := &view.Table{Columns: []view.Column{{Name: "ratio"}, {Name: "arm", Left: true}, {Name: "levels"}, {Name: "#iterations"},
		{Name: "mean", Unit: "ms"}, {Name: "+/-", Unit: "ms"}, {Name: "p50", Unit: "ms"}, {Name: "p99", Unit: "ms"},
		{Name: "comm", Unit: "ms"}, {Name: "comp", Unit: "ms"}, {Name: "ideal", Unit: "ms"}, {Name: "overlap"}, {Name: "gain"}}}
	var all []*ParamServer
	for _, r := range results {
		all = append(all, Of(r))
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b *ParamServer) int { return cmp.Compare(a.ComputeRatio, b.ComputeRatio) })
	for _, ps := range sorted {
		interval, overlap := "-", "-"
		if ps.MeanHigh > ps.MeanLow {
			interval = view.Msec((ps.MeanHigh - ps.MeanLow) / 2)
		}
		if o, ok := ps.overlap(); ok {
			overlap = view.Number(o*100, 1) + " %"
		}
		p50, p99 := reports.PercentileCell(&ps.Iteration, "p50"), reports.PercentileCell(&ps.Iteration, "p99")
		p50.Text, p99.Text = view.Msec(ps.Iteration.P50), view.Msec(ps.Iteration.P99)
		t.Add(view.Cell{Text: view.Number(ps.ComputeRatio, -1)}, view.Cell{Text: view.Printable(ps.Arm)}, view.Cell{Text: strconv.Itoa(ps.Levels)}, view.Cell{Text: view.Integer(ps.Iteration.Count)},
			view.Cell{Text: view.Msec(ps.Iteration.Mean)}, view.Cell{Text: interval}, p50, p99, view.Cell{Text: view.Msec(ps.CommunicationNs)}, view.Cell{Text: view.Msec(ps.ComputeNs)},
			view.Cell{Text: view.Msec(ps.IdealNs)}, view.Cell{Text: overlap}, view.Cell{Text: fasterThanFIFO(ps, all)})
	}
	return []reports.Block{{Lead: "an iteration beside its communication alone, its computation alone and the longer of both; overlap is how much of the shorter is hidden, gain how many times shorter than fifo, both by the median:", Table: t}}
}
