package starvation

import (
	"math"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

const Name = "starvation"

type Workload struct {
	loads    []string
	priority uint8
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:     Name,
		Results:  results,
		Summary:  "throughput of low priority under high-priority load on one QP",
		Examples: "rdmaperf run --transport 'sched(strict)+iwarp,sched(drr)+iwarp' --workload starvation",
		Group:    "Workload starvation",
		Ops:      []string{"write"},
		Sizes:    []int{64 << 10},
	}
}

func (s *Workload) Flags(f *pflag.FlagSet) {
	f.StringSliceVar(&s.loads, "high-load", []string{"0", "20", "40", "60", "80", "100", "120"},
		"starvation: comma list of what the high class offers, in percent of what one class alone carries")
	f.Uint8Var(&s.priority, "high-priority", DefaultHighPriority,
		"starvation: of the high class's work requests; the low class has 0")
}

func (s *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	if c.AnyOf("qp", "qp-sweep", "threads") != "" {
		return nil, values.Wrong("workload", "%s has two classes on one QP and one thread", Name)
	}
	if err := c.NoEvents(noEvents); err != nil {
		return nil, err
	}
	if c.Changed("interval") {
		return nil, values.Wrong("interval", "the workload %s has no series", Name)
	}
	var points []engine.Point
	for _, op := range c.OpsOf(s.Meta().Ops) {
		for _, n := range c.SizesOf(op, s.Meta().Sizes) {
			for _, text := range values.Unique(s.loads) {
				load, err := strconv.ParseFloat(text, 64)
				if err != nil || !(load >= 0) || math.IsInf(load, 1) {
					return nil, values.Wrong("high-load", "%q: want a number from 0", text)
				}
				l := Load{load, s.priority}
				pt := point(c.Plan, op, n, l)
				if err := l.check(pt); err != nil {
					return nil, pt.Wrong(err)
				}
				if slices.Contains(points, pt) {
					return nil, values.Wrong("high-load", "%v is given twice", load)
				}
				points = append(points, pt)
			}
		}
	}
	return points, nil
}

// Of is the detail of two classes, nil for any other.
func Of(r *reports.Result) *Starvation { return reports.DetailOf[Starvation](r) }

// Starvation is what two classes of one QP got: high offers a share of the capacity, low takes the rest.
type Starvation struct {
	HighLoadPercent        float64    `json:"high_load_percent"` // offered, of the capacity
	HighPriority           int        `json:"high_priority"`     // the low class has 0
	CapacityBytesPerSecond float64    `json:"capacity_bytes_per_second"`
	High                   ClassShare `json:"high"`
	Low                    ClassShare `json:"low"`
}

// ClassShare is what one class completed in the window.
type ClassShare struct {
	Operations     int64   `json:"operations"`
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// Contradiction is why the figures cannot be; empty where they can.
func (s *Starvation) Contradiction() string {
	// A twentieth: the capacity is measured in a window of its own.
	if sum := s.High.BytesPerSecond + s.Low.BytesPerSecond; s.CapacityBytesPerSecond > 0 &&
		sum > 1.05*s.CapacityBytesPerSecond {
		return "the classes got " + view.Number(100*sum/s.CapacityBytesPerSecond, 1) + " % of the capacity"
	}
	return ""
}

var results = &reports.Workload{
	Name: Name, Title: "Starvation",
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
