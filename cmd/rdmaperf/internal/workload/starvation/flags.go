package starvation

import (
	"math"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	starvationresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/starvation/results"
)

// Name is the workload's.
const Name = "starvation"

// Room is its row of the table.
var Room = &room.Room{
	Name:    Name,
	Runner:  new(flags),
	Results: starvationresults.Results,
	Summary: "what a high class leaves to a low one on the same QP",
	Group:   "Workload starvation",
	Means:   [][]string{names},
	Names:   names,
	Ops:     []string{"write"},
	Sizes:   []int{64 << 10},
	Flags:   func() room.Flags { return new(flags) },
}

var names = []string{"high-load", "high-priority"}

type flags struct {
	room.None
	loads    []string
	priority uint8
}

func (s *flags) Register(f *pflag.FlagSet) {
	f.StringSliceVar(&s.loads, "high-load", []string{"0", "20", "40", "60", "80", "100", "120"},
		"starvation: comma list of what the high class offers, in percent of what one class alone carries")
	f.Uint8Var(&s.priority, "high-priority", DefaultHighPriority,
		"starvation: of the high class's work requests; the low class has 0")
}

// Check refuses threads and queue pairs.
func (s *flags) Check(c *room.Common) error {
	if c.AnyOf("qp", "qp-sweep", "threads") != "" {
		return values.Wrong("workload", "%s has two classes on one QP and one thread", Name)
	}
	return nil
}

// Points are all operations and sizes at all loads.
func (s *flags) Points(p *engine.Plan, c *room.Common) ([]engine.Point, error) {
	if err := c.NoEvents(noEvents); err != nil {
		return nil, err
	}
	if c.Changed("interval") {
		return nil, values.Wrong("interval", "the workload %s has no series", Name)
	}
	ops, sizes := c.Ops, c.Sizes
	if len(ops) == 0 {
		ops = Room.Ops
	}
	if len(sizes) == 0 {
		sizes = Room.Sizes
	}
	var points []engine.Point
	for _, op := range ops {
		for _, n := range sizes {
			for _, text := range values.Unique(s.loads) {
				load, err := strconv.ParseFloat(text, 64)
				if err != nil || !(load >= 0) || math.IsInf(load, 1) {
					return nil, values.Wrong("high-load", "%q: want a number from 0", text)
				}
				l := Load{load, s.priority}
				pt := point(p, op, n, l)
				if err := l.check(pt); err != nil {
					return nil, pt.Wrong(err)
				}
				if slices.Contains(points, pt) {
					return nil, values.Wrong("high-load", "%v stands there twice", load)
				}
				points = append(points, pt)
			}
		}
	}
	return points, nil
}
