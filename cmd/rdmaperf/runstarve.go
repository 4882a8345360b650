package main

import (
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
)

// starveFlags are those of the starvation workload, as given.
type starveFlags struct {
	loads    []string
	priority uint8
}

// starveSizes are those of both classes where none are given.
var starveSizes = []int{64 << 10}

func (s *starveFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&s.loads, "high-load", []string{"0", "20", "40", "60", "80", "100", "120"}, "starvation: comma list of what the high class offers, in percent of what one class alone carries")
	f.Uint8Var(&s.priority, "high-priority", bench.DefaultHighPriority, "starvation: of the high class's work requests; the low class has 0")
}

// points are all sizes at all loads.
func (s *starveFlags) points(ops []string, sizes []int) ([]bench.Point, error) {
	if len(ops) == 0 {
		ops = []string{"write"}
	}
	if len(sizes) == 0 {
		sizes = starveSizes
	}
	var points []bench.Point
	for _, op := range ops {
		for _, n := range sizes {
			for _, text := range unique(s.loads) {
				load, err := strconv.ParseFloat(text, 64)
				if err != nil || !(load >= 0) {
					return nil, wrong("high-load", "%q: want a number from 0", text)
				}
				pt := bench.Point{Workload: bench.WorkloadStarvation, Op: op, Size: n, HighLoad: load}
				if slices.Contains(points, pt) {
					return nil, wrong("high-load", "%v stands there twice", load)
				}
				points = append(points, pt)
			}
		}
	}
	return points, nil
}
