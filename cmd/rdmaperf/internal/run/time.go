package run

import (
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/room"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

// plannedTime is how long a point takes by its plan; zero when operations are
// counted instead.
func plannedTime(p *engine.Plan, pt engine.Point) time.Duration {
	return p.PlannedTime(pt, windowsOf(pt))
}

// windowsOf is how many measured windows a point has.
func windowsOf(pt engine.Point) int {
	if r := room.Find(workload.Rooms, pt.Workload); r != nil {
		return max(r.Windows, 1)
	}
	return 1
}

// costs are the planned times of all points of all transports and repeats.
func (m *runner) costs() []time.Duration {
	var costs []time.Duration
	for _, a := range m.arms {
		for _, pt := range a.plan.Points {
			costs = append(costs, plannedTime(&a.plan, pt))
		}
	}
	return slices.Repeat(costs, m.o.repeat)
}
