package rpc

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Name is the workload's.
const Name = "rpc"

// Workload implements workload.Workload. Of its two sizes one costs nothing to move, and one nothing else.
type Workload struct {
	kinds    []string
	response string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:    Name,
		Results: callsresults.Results,
		Summary: "unary and streaming calls: latency, rate, CPU and memory",
		Examples: "rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload rpc -s 64 -D 3s\n" +
			"rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --rpc unary,stream,oneway -s 32 --response 8 " +
			"--qp-sweep 1,16,64\n" +
			"rdmaperf run --transport 'grpc(fused,event)+iwarp,grpc(fused,bpev)+iwarp' --workload rpc -s 64",
		Note:       "only grpc stacks mean rpc",
		Group:      "Workloads rpc, kv and tensor",
		Calls:      true,
		Slices:     true,
		OwnThreads: true,
		Means:      []string{"outstanding"},
		Takes:      []string{"rate", "rate-sweep"},
		Words:      map[string][]string{"rpc": {"unary", "stream", "oneway"}},
		Sizes:      []int{64, 1 << 20},
	}
}

func (r *Workload) Flags(f *pflag.FlagSet) {
	f.StringSliceVar(&r.kinds, "rpc", []string{engine.CallUnary},
		"rpc: comma list of unary, stream (an exchange of messages on a stream that stays), oneway (a stream of "+
			"messages to the server)")
	f.StringVar(&r.response, "response", "", "rpc: bytes of a response (default as the request)")
}

// Points are all kinds, sizes, rates, connections and calls outstanding.
func (r *Workload) Points(c *workload.Common) ([]engine.Point, error) {
	if err := c.CheckCalls(Name, "rpc"); err != nil {
		return nil, err
	}
	sizes := c.SizesOf("", r.Meta().Sizes)
	response := 0
	if r.response != "" {
		var err error
		if response, err = values.Bytes(r.response); err != nil {
			return nil, values.Wrong("response", "%w", err)
		}
		if response == 0 {
			return nil, values.Wrong("response", "starts at 1 byte")
		}
	}
	var points []engine.Point
	for _, kind := range values.Unique(r.kinds) {
		for _, n := range sizes {
			pt := engine.Point{Workload: Name, Op: transports.KindCall.String(), Size: n, Call: kind,
				Response: response}
			switch {
			case kind == engine.CallOneway:
				pt.Response = countBytes
			case response == 0:
				pt.Response = n
			}
			pt.Words = words(pt)
			points = append(points, c.OfCalls(pt)...)
		}
	}
	return workload.Checked(points, check)
}

// words are how a point reads.
func words(p engine.Point) string {
	s := fmt.Sprintf("%s %s %d B", Name, p.Call, p.Size)
	if p.Response != p.Size && p.Call != engine.CallOneway {
		s += fmt.Sprintf(" answered by %d B", p.Response)
	}
	return s
}
