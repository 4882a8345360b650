package starvation

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	starvationkind "github.com/rdmaperf/rdmaperf/reports/kinds/starvation"
	"github.com/rdmaperf/rdmaperf/transports"
)

// work is the row of two classes on one path.
var work = &engine.Workload{
	Kind: starvationkind.Kind, Name: Name, Again: true, OnlyPolled: true, Has: engine.Members{Options: true},
	NoEvents: "the high class is paced by spinning, so it needs busy polling",
	NoSeries: "the workload starvation has no series",
	Point:    validateStarvation, Describe: func(p engine.Point) string {
		l, _ := loadOf(p) // Point says what is wrong
		return fmt.Sprintf("%s %s %d B at %v %%", p.Workload, p.Op, p.Size, l.High)
	},
	Needs: []engine.Need{{Kind: transports.KindRead, Why: "which proves that data arrived"}}, Limits: starvationLimits,
	Shape: starvationShape, Check: checkStarvation, Layout: starvationLayout, Config: starvationConfig, Client: newSources, Server: newStarved,
	Warm: bothClasses, Before: runCapacity, Prove: bothClasses,
	Result: starvationResult, Parameters: starvationParameters,
}
