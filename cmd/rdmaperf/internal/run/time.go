package run

import (
	"slices"
	"time"
)

// costs are the planned times of all points of all stacks and rounds.
func (m *runner) costs() []time.Duration {
	var costs []time.Duration
	for _, a := range m.arms {
		for _, pt := range a.plan.Points {
			costs = append(costs, a.plan.PlannedTime(pt))
		}
	}
	return slices.Repeat(costs, m.rounds)
}
