package bench

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/transports"
)

// Workload names, as --workload and Result.Workload spell them.
const (
	WorkloadLatency    = "latency"
	WorkloadThroughput = "throughput"
	WorkloadHOL        = "hol"
	WorkloadIncast     = "incast"
	WorkloadConnect    = "connect"

	WorkloadParamServer = "paramserver"
	WorkloadStarvation  = "starvation"
	WorkloadRPC         = "rpc"
	WorkloadKV          = "kv"
	WorkloadTensor      = "tensor"
)

// workload is a row of the table of workloads: what tells it from the others
// before a point is measured.
type workload struct {
	name     string
	standard bool                                      // measured when none is named
	point    func(Point) error                         // what its points must be beside a good operation and size; nil: nothing
	shape    func(*Shape, *Plan, transports.Caps)      // fills in QPs, threads, depths and slots
	check    func(*Shape) error                        // holds a shape of the peer against them; nil: nothing special
	limits   func(*Plan, Point, transports.Caps) error // what a transport's limits forbid; nil: nothing special
	calls    *callWork                                 // of a workload of calls; nil: of sessions
}

var workloads = []workload{
	{name: WorkloadLatency, standard: true, shape: (*Shape).latencyShape, check: (*Shape).checkLatency},
	{name: WorkloadThroughput, standard: true, shape: (*Shape).streamDepths, limits: streamLimits},
	{name: WorkloadHOL, standard: true, point: Point.validateHOL, shape: (*Shape).holShape, check: (*Shape).validateHOL, limits: holLimits},
	{name: WorkloadIncast, point: Point.validateIncast, shape: (*Shape).incastShape, check: (*Shape).checkIncast, limits: streamLimits},
	{name: WorkloadConnect, point: Point.validateConnect, shape: (*Shape).connectShape, check: (*Shape).checkConnect},
	{name: WorkloadParamServer, point: Point.validateParamServer, shape: (*Shape).trainShape, check: (*Shape).checkTrain, limits: trainLimits},
	{name: WorkloadStarvation, point: Point.validateStarvation, shape: (*Shape).starvationShape, check: (*Shape).checkStarvation, limits: starvationLimits},
	{name: WorkloadRPC, point: Point.validateRPC, shape: (*Shape).callShape, check: (*Shape).checkCalls, limits: callLimits, calls: &rpcWork},
	{name: WorkloadKV, point: Point.validateKV, shape: (*Shape).callShape, check: (*Shape).checkCalls, limits: callLimits, calls: &kvWork},
	{name: WorkloadTensor, point: Point.validateTensor, shape: (*Shape).callShape, check: (*Shape).checkCalls, limits: callLimits, calls: &tensorWork},
}

// findWorkload returns the row of a name, or nil.
func findWorkload(name string) *workload {
	i := slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })
	if i < 0 {
		return nil
	}
	return &workloads[i]
}

// has tells whether some point is of the workload.
func (p *Plan) has(name string) bool {
	return slices.ContainsFunc(p.Points, func(pt Point) bool { return pt.Workload == name })
}

// hasCalls tells whether some point is of a workload of calls.
func (p *Plan) hasCalls() bool {
	return slices.ContainsFunc(p.Points, func(pt Point) bool { return CallWorkload(pt.Workload) })
}

// CallWorkload tells workloads that a carrier of calls runs, rather than sessions.
func CallWorkload(name string) bool {
	w := findWorkload(name)
	return w != nil && w.calls != nil
}

// Workloads lists the known workloads.
func Workloads() []string { return workloadNames(false) }

// StandardWorkloads lists those that a run measures when none is named.
func StandardWorkloads() []string { return workloadNames(true) }

func workloadNames(standard bool) []string {
	var names []string
	for _, w := range workloads {
		if w.standard || !standard {
			names = append(names, w.name)
		}
	}
	return names
}
