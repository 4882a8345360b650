package tensor

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	callsresults "github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc/results"
)

// Name is the workload's.
const Name = "tensor"

// Room is its row of the table.
var Room = &room.Room{
	Name:       Name,
	Runner:     new(flags),
	Results:    callsresults.TensorResults,
	Summary:    "tensors pushed, pulled and exchanged by calls",
	Group:      "Workloads rpc, kv and tensor",
	Calls:      true,
	OwnThreads: true,
	Means:      [][]string{{"tensor"}},
	Takes:      []string{"outstanding", "rate", "rate-sweep"},
	Words:      map[string]func() []string{"tensor": room.Fixed("push", "pull", "exchange")},
	Names:      []string{"tensor"},
	Sizes:      []int{1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20},
	Flags:      func() room.Flags { return new(flags) },
}

type flags struct {
	room.None
	calls []string
}

func (t *flags) Register(f *pflag.FlagSet) {
	f.StringSliceVar(&t.calls, "tensor", TensorCalls(),
		"tensor: comma list of push (a tensor to the server), pull (a tensor to the client), exchange (one each "+
			"way), of --size bytes (default 1K to 64M)")
}

// Check refuses what describes no calls.
func (t *flags) Check(c *room.Common) error { return c.CheckCalls(Name) }

// Points are all directions, sizes, rates, connections and calls outstanding.
func (t *flags) Points(_ *engine.Plan, c *room.Common) (points []engine.Point, err error) {
	if err := c.CallOps(Name, "tensor"); err != nil {
		return nil, err
	}
	sizes := c.Sizes
	if len(sizes) == 0 {
		sizes = Room.Sizes
	}
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
