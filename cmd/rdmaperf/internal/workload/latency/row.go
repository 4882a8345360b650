package latency

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	latencykind "github.com/rdmaperf/rdmaperf/reports/kinds/latency"
)

// work is the row of one operation at a time.
var work = &engine.Workload{
	Kind: latencykind.Kind, Name: Name, Rated: true, Clocked: true, Has: engine.Members{AppWork: true}, Sends: engine.PingPongSends,
	Shape: drive.LatencyShape, Check: drive.CheckLatency, Layout: drive.PingPongLayout, Config: drive.OneOperation, Client: drive.NewPingPong, Server: drive.NewPingPong,
	PingPong: true, RoundTrip: drive.HalfOrFull, Result: drive.Latencies, Parameters: drive.PingPongParameters,
	ByCall: rpc.CallsAs(Name, latencykind.Kind, &rpc.Work, 1),
}
