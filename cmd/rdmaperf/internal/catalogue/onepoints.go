package catalogue

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/transports"
)

// OnePoints leaves of each question one point: a small message, a small call, a stream of large ones, and probes
// behind the bulk of their own QP or connection.
func OnePoints(points []engine.Point) []engine.Point {
	const small, large = 64, 1 << 20
	return slices.DeleteFunc(slices.Clone(points), func(pt engine.Point) bool {
		call := pt.Op == transports.KindCall.String()
		switch pt.Workload {
		case latency.Name:
			return pt.Size != small || !call && pt.Op != transports.KindSend.String()
		case throughput.Name:
			return pt.Size != large
		case hol.Name:
			return pt.Variant != hol.SameQP
		}
		return false
	})
}
