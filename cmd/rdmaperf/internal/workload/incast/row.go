package incast

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	incastkind "github.com/rdmaperf/rdmaperf/reports/kinds/incast"
)

// work is the row of streams to one thread.
var work = &engine.Workload{
	Kind: incastkind.Kind, Name: Name, Stream: true, Numbered: true, Again: true, OneTarget: true, Point: validateIncast, Sends: engine.StreamSends, Limits: engine.StreamLimits,
	NoEvents: "one thread serves all clients of an incast and cannot sleep on one, so it needs busy polling",
	Shape:    incastShape, Check: checkIncast, Layout: (*engine.Shape).StreamLayout, Client: drive.NewFlow, Server: drive.NewFlow,
	ByCall: byCall(),
	Result: incastResult, Parameters: incastParameters,
}
