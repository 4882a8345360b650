package tensor

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
)

// Name is the workload's.
const Name = "tensor"

// Workload implements workload.Workload.
type Workload struct {
	calls []string
}

func (*Workload) Meta() workload.Meta {
	return workload.Meta{
		Name:       Name,
		Results:    callsresults.TensorResults,
		Summary:    "tensors pushed, pulled and exchanged by gRPC calls",
		Examples:   "rdmaperf run --transport 'grpc(tcp),grpc(fused)+iwarp' --workload tensor --tensor exchange -s 1K,64K,1M",
		Group:      "Workloads rpc, kv and tensor",
		Calls:      true,
		OwnThreads: true,
		Takes:      []string{"outstanding", "rate", "rate-sweep"},
		Words:      map[string][]string{"tensor": {"push", "pull", "exchange"}},
		Sizes:      []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20},
	}
}

func (t *Workload) Flags(f *pflag.FlagSet) {
	f.StringSliceVar(&t.calls, "tensor", TensorCalls(),
		"tensor: comma list of push (a tensor to the server), pull (a tensor to the client), exchange (one each "+
			"way), of --size bytes (default 1K to 64M)")
}

// Points are all directions, sizes, rates, connections and calls outstanding.
func (t *Workload) Points(c *workload.Common) (points []engine.Point, err error) {
	if err := c.CheckCalls(Name, "tensor"); err != nil {
		return nil, err
	}
	sizes := c.SizesOf("", t.Meta().Sizes)
	for _, call := range values.Unique(t.calls) {
		if !slices.Contains(TensorCalls(), call) {
			return nil, values.Wrong("tensor", "%q: want %s", call, strings.Join(TensorCalls(), ", "))
		}
		for _, n := range sizes {
			points = append(points, c.OfCalls(TensorPoint(call, n))...)
		}
	}
	return points, nil
}
