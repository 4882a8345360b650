package main

import (
	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/bench"
	"github.com/rdmaperf/rdmaperf/transports"
)

// rpcFlags are those of the workload rpc, and of the grpc layers below it, as given.
type rpcFlags struct {
	kinds       []string
	response    string
	outstanding string

	sweeps  grpcSweeps
	pollers string
}

// rpcSizes are those of requests where none are given: one that costs nothing to
// move, and one that costs nothing else.
var rpcSizes = []int{64, 1 << 20}

// countBytes is the answer to messages one way: how many there were.
const countBytes = 8

// rpcFlagNames are the flags that mean this workload.
var rpcFlagNames = []string{"rpc", "response"}

func (r *rpcFlags) register(f *pflag.FlagSet) {
	f.StringSliceVar(&r.kinds, "rpc", []string{bench.CallUnary}, "rpc: comma list of unary, stream (an exchange of messages on a stream that stays), oneway (a stream of messages to the server)")
	f.StringVar(&r.response, "response", "", "rpc: bytes of a response (default as the request)")
	f.StringVar(&r.outstanding, "outstanding", "", "rpc, kv, tensor: calls outstanding on each of the --qp connections, a goroutine each; a comma list or FROM:TO:STEP is a point each (default --tx-depth, else 1)")
	f.StringSliceVar(&r.sweeps.modes, "mode-sweep", nil, "comma list of bpev, bp, event: each stack with grpc(dropin) or grpc(fused) is run in each mode")
	f.StringSliceVar(&r.sweeps.busy, "busy-sweep", nil, "likewise of busy times, such as 0,10us,50us, in the mode bpev")
	f.StringVar(&r.pollers, "poller-sweep", "", "likewise of background pollers, a comma list or FROM:TO:STEP")
	f.StringSliceVar(&r.sweeps.rings, "ring-sweep", nil, "likewise of receive rings, such as 16K,256K,4M")
}

// multiply puts every value of the sweeps into the stacks.
func (r *rpcFlags) multiply(stacks []string) (_ []string, err error) {
	g := grpcSweeps{modes: unique(r.sweeps.modes), busy: unique(r.sweeps.busy), rings: unique(r.sweeps.rings)}
	if g.pollers, err = pollerCounts(r.pollers); err != nil {
		return nil, err
	}
	return g.sweep(stacks)
}

// axes are those of --outstanding and of what other workloads have, too.
func (r *rpcFlags) axes(rates []float64, conns []int) (a callAxes, err error) {
	a = callAxes{rates, conns, []int{0}}
	if r.outstanding != "" {
		a.outstanding, err = parseCounts("outstanding", r.outstanding)
	}
	return a, err
}

// points are all kinds, sizes, rates, connections and calls outstanding.
func (r *rpcFlags) points(ops []string, sizes []int, axes callAxes) ([]bench.Point, error) {
	if err := callOps(ops, bench.WorkloadRPC, "rpc"); err != nil {
		return nil, err
	}
	if len(sizes) == 0 {
		sizes = rpcSizes
	}
	response := 0
	if r.response != "" {
		var err error
		if response, err = parseBytes(r.response); err != nil {
			return nil, wrong("response", "%w", err)
		}
		if response == 0 {
			return nil, wrong("response", "starts at 1 byte")
		}
	}
	var points []bench.Point
	for _, kind := range unique(r.kinds) {
		for _, n := range sizes {
			pt := bench.Point{Workload: bench.WorkloadRPC, Op: transports.KindCall.String(), Size: n, Call: kind, Response: response}
			switch {
			case kind == bench.CallOneway:
				pt.Response = countBytes
			case response == 0:
				pt.Response = n
			}
			points = append(points, axes.multiply(pt)...)
		}
	}
	return points, nil
}

// check refuses what describes another workload than one of calls.
func (r *rpcFlags) check(workload string, list []string, changed func(string) bool) error {
	for _, f := range []string{"threads", "rx-depth", "inline_size", "cq-mod"} {
		if changed(f) && len(list) == 1 {
			return wrong(f, "the workload %s has a goroutine for each call outstanding, and gRPC's own buffers", workload)
		}
	}
	if changed("tx-depth") && changed("outstanding") {
		return wrong("outstanding", "it and --tx-depth exclude each other")
	}
	return nil
}
