package hol

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	holkind "github.com/rdmaperf/rdmaperf/reports/kinds/hol"
)

// work is the row of head-of-line blocking.
var work = &engine.Workload{
	Kind: holkind.Kind, Name: Name, Again: true, Has: engine.Members{Arms: true, Options: true},
	NoEvents: "the head-of-line workload paces and watches two things at once, so it needs busy polling",
	Point:    validateHOL, Describe: armed, Sends: engine.StreamSends, Limits: holLimits,
	Shape: holShape, Check: checkHOL, Layout: holLayout, Config: holConfig,
	Warm: holWarm, Before: runAlone, Keep: keepLoaded,
	Prove: holProve, Client: newHOLClient, Server: newHOLServer,
	ByCall:  byCall(),
	Samples: reports.SamplesProbeLoaded, RoundTrip: drive.Full, Result: holResult, Parameters: holParameters,
}

func armed(p engine.Point) string {
	return fmt.Sprintf("%s %s %d B %s", p.Workload, p.Op, p.Size, p.Arm)
}
