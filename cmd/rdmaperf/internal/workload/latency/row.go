package latency

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/loop"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	latencykind "github.com/rdmaperf/rdmaperf/reports/kinds/latency"
)

// work is the row of one operation at a time.
var work = &engine.Workload{
	Kind: latencykind.Kind, Name: Name, Rated: true, Clocked: true, Has: engine.Members{AppWork: true}, Sends: engine.PingPongSends,
	Shape: loop.LatencyShape, Check: loop.CheckLatency, Layout: loop.PingPongLayout, Config: loop.OneOperation, Client: loop.NewPingPong, Server: loop.NewPingPong,
	PingPong: true, RoundTrip: loop.HalfOrFull, Result: loop.Latencies, Parameters: loop.PingPongParameters,
	ByCall: rpc.CallsAs(Name, latencykind.Kind, &rpc.Work, 1),
}
