package results

import "github.com/rdmaperf/rdmaperf/reports"

// Results declares the dimensions and figures of these results.
var Results = &reports.Workload{
	Name: "starvation", Title: "Starvation",
	Intro: "A high class offers a share of what one class alone carried right before (capacity), and a low class on " +
		"the same queue pair takes what it gets. Shares are of what both got in the window.",
	Dims: []reports.DimDef{
		{Name: "high_load_percent", Unit: "%", Help: "what the high class offers, of the capacity"},
		{Name: "high_priority", Help: "priority of the high class; the low one has 0"},
	},
	Figures: []reports.FigureDef{
		{Name: "high.bw", Quantity: reports.QuantityBytes, Better: reports.More, Help: "what the high class got"},
		{Name: "low.bw", Quantity: reports.QuantityBytes, Better: reports.More, Help: "what the low class got"},
		{Name: "capacity.bw", Quantity: reports.QuantityBytes, Better: reports.More,
			Help: "what one class alone carried right before"},
		{Name: "offered.bw", Quantity: reports.QuantityBytes, Better: reports.Neither,
			Help: "what the high class offered"},
		{Name: "high.share", Quantity: reports.QuantityRatio, Better: reports.Neither,
			Help: "of the high class of what both got"},
		{Name: "low.share", Quantity: reports.QuantityRatio, Better: reports.Neither,
			Help: "of the low class of what both got"},
	},
	Shown:    []string{"bw", "high.bw", "low.bw", "high.share", "low.share", "offered.bw", "capacity.bw"},
	Detail:   func() reports.Detail { return new(Starvation) },
	Describe: describe,
}

// Member implements reports.Detail.
func (*Starvation) Member(string) string { return "starvation" }

func describe(w *reports.Workload, r *reports.Result) {
	s := Of(r)
	r.Impossible = s.Contradiction()
	r.Note = "two classes on one QP: high offers a share of what one class alone carried right before, low takes " +
		"what it gets"
	r.Dims = reports.DimsOf(w.Dims, s.HighLoadPercent, s.HighPriority)
	both := s.High.BytesPerSecond + s.Low.BytesPerSecond
	r.Figures = reports.FiguresOf(w.Figures, s.High.BytesPerSecond, s.Low.BytesPerSecond, s.CapacityBytesPerSecond,
		s.CapacityBytesPerSecond*s.HighLoadPercent/100, s.High.BytesPerSecond/both, s.Low.BytesPerSecond/both)
}
