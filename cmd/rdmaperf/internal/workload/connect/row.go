package connect

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	connectkind "github.com/rdmaperf/rdmaperf/reports/kinds/connect"
	"github.com/rdmaperf/rdmaperf/transports"
)

// work is the row of the set-up of connections.
var work = &engine.Workload{
	Kind: connectkind.Kind, Name: Name, Point: validateConnect, Needs: []engine.Need{{Kind: transports.KindWrite, Why: "of the first round trip"}},
	NoEvents: "the first round trip of a connection is polled for, so it needs busy polling",
	Shape:    connectShape, Check: checkConnect, Layout: (*engine.Shape).StreamLayout,
	ByCall: byCall(),
	Run:    runConnect, Serve: connectPoint,
	RoundTrip: drive.Full, Result: connectResult,
	Parameters: func(m *engine.Measurement, p map[string]any) { m.Sh.Barrier(p) },
}
