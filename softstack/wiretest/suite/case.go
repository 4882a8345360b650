package suite

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/transports/conform"
)

type row struct {
	conform.Case
	lacks string // why only a test target can be asked this; "" for rows that rping can be asked
	run   func(t *trial)
}

func table() []row {
	return slices.Concat(startup, framing, ddpRows, rdmapRows, extensionRows, mutations)
}

// Catalogue lists the cases. The caller owns the slice.
func Catalogue() []conform.Case {
	var all []conform.Case
	for _, r := range table() {
		all = append(all, r.Case)
	}
	return all
}

// must makes a row; should, may and hazard change one.
func must(id, clause, requirement string, run func(*trial)) row {
	return row{Case: conform.Case{ID: id, Clause: clause, Requirement: requirement}, run: run}
}

// ofTarget is a row that needs more of the peer than rping does: a test target. lacks says what.
func ofTarget(id, clause, requirement, lacks string, run func(*trial)) row {
	r := must(id, clause, requirement, run)
	r.lacks = lacks
	return r
}

func should(r row) row {
	r.Level = conform.Should
	return r
}

func may(r row) row {
	r.Level = conform.May
	return r
}

func hazard(r row) row {
	r.Hazard = true
	return r
}

const (
	wantsInitiator = "the peer has to connect to the suite; rping only listens, 'serve --target' does both"
	wantsMarkers   = "the peer has to ask for markers; 'serve --target' can"
)
