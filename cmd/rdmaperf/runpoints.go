package main

import (
	"errors"
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Sizes and operations where none are given: few, so that a run without options
// ends soon, and telling.
var (
	latencySizes    = []int{64, 4 << 10}
	throughputSizes = []int{64, 64 << 10, 1 << 20}
	latencyOps      = []string{"send", "write", "read"}
	throughputOps   = []string{"write"}
	connectSizes    = []int{64}
	connectOps      = []string{"read"}
)

// maxAll is the largest size of --all, perftest's.
const maxAll = 8 << 20

// points is the product of workloads, operations and sizes. trained gets the models
// that they name.
func (o *runOptions) points(changed func(string) bool, trained *map[string]*bench.Model) ([]bench.Point, error) {
	var sizes []int
	for _, s := range o.sizes {
		n, err := parseBytes(s)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, errors.New("sizes start at 1 byte")
		}
		if slices.Contains(sizes, n) {
			return nil, fmt.Errorf("size %s stands there twice", s)
		}
		sizes = append(sizes, n)
	}
	for n := 2; o.all && n <= maxAll; n *= 2 {
		sizes = append(sizes, n)
	}
	workloads, err := o.workloadsFor(changed)
	if err != nil {
		return nil, err
	}
	rates, err := o.load.rates(changed)
	if err != nil {
		return nil, err
	}
	qps, err := o.load.qps(changed)
	if err != nil {
		return nil, err
	}
	clients, err := parseCounts("clients", o.load.clients)
	if err != nil {
		return nil, err
	}
	atOnce, err := parseCounts("concurrency", o.load.atOnce)
	if err != nil {
		return nil, err
	}
	var points []bench.Point
	for _, w := range workloads {
		qps := qps
		switch w {
		case bench.WorkloadIncast:
			qps = clients
		case bench.WorkloadConnect:
			qps = atOnce
		}
		ops := unique(o.ops)
		if bench.CallWorkload(w) {
			axes, err := o.rpc.axes(rates, qps)
			if err != nil {
				return nil, err
			}
			var calls []bench.Point
			switch w {
			case bench.WorkloadKV:
				calls, err = o.kv.points(ops, axes)
			case bench.WorkloadTensor:
				calls, err = o.tensor.points(ops, sizes, axes)
			default:
				calls, err = o.rpc.points(ops, sizes, axes)
			}
			if err != nil {
				return nil, err
			}
			points = append(points, calls...)
			continue
		}
		if w == bench.WorkloadStarvation {
			starved, err := o.starve.points(ops, sizes)
			if err != nil {
				return nil, err
			}
			points = append(points, starved...)
			continue
		}
		if w == bench.WorkloadParamServer {
			train, models, err := o.train.points()
			if err != nil {
				return nil, err
			}
			points, *trained = append(points, train...), models
			continue
		}
		if w == bench.WorkloadHOL {
			hol, err := o.hol.points(ops)
			if err != nil {
				return nil, err
			}
			points = append(points, hol...)
			continue
		}
		if len(ops) == 0 {
			switch w {
			case bench.WorkloadLatency:
				ops = latencyOps
			case bench.WorkloadConnect:
				ops = connectOps
			default:
				ops = throughputOps
			}
		}
		for _, op := range ops {
			for _, n := range o.pointSizes(w, op, sizes) {
				for _, rate := range rates {
					for _, q := range qps {
						points = append(points, bench.Point{Workload: w, Op: op, Size: n, Rate: rate, QPs: q, Bidirectional: o.load.bothWays})
					}
				}
			}
		}
	}
	return points, nil
}

func (o *runOptions) pointSizes(workload, op string, sizes []int) []int {
	k, _ := transports.ParseKind(op)
	atomic := k == transports.KindFetchAdd || k == transports.KindCmpSwap
	switch {
	case atomic && (o.all || len(sizes) == 0):
		return []int{8}
	case len(sizes) > 0:
		return sizes
	case workload == bench.WorkloadConnect:
		return connectSizes
	case workload != bench.WorkloadLatency:
		return throughputSizes
	default:
		return latencySizes
	}
}
