package run

import (
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

// LoopAuto leaves the loop of ping-pongs to what the stacks have.
const LoopAuto = "auto"

// parseLoop reads --loop as a plan has it.
func parseLoop(s string) (string, error) {
	switch s {
	case LoopAuto:
		return "", nil
	case engine.LoopPlain, engine.LoopProvider:
		return s, nil
	}
	return "", fmt.Errorf("%q: want %s, %s or %s", s, LoopAuto, engine.LoopPlain, engine.LoopProvider)
}

// shareLoop gives all stacks the plain loop of ping-pongs where one of them has no other,
// unless --loop says which: a ratio of two loops is none of two stacks. A device with a
// clock of its own is timed by its provider in any case, and stands in a table of its own.
func (m *runner) shareLoop() {
	if m.p.base.Loop != "" {
		return
	}
	var timed []*arm
	for _, a := range m.arms {
		if a.tr.Caps().Clock == nil && slices.ContainsFunc(a.plan.Points, func(pt engine.Point) bool {
			return pt.Needs.PingPong
		}) {
			timed = append(timed, a)
		}
	}
	if !slices.ContainsFunc(timed, func(a *arm) bool { return !a.tr.Caps().PingPong }) {
		return
	}
	for _, a := range timed {
		a.plan.Loop = engine.LoopPlain
	}
}
