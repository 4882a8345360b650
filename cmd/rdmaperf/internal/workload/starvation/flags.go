package starvation

import (
	"math"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
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
