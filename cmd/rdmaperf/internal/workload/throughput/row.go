package throughput

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/rpc"
	throughputkind "github.com/rdmaperf/rdmaperf/reports/kinds/throughput"
)

// DefaultCallDepth is how many calls of throughput are outstanding on a connection.
// Each is a goroutine, and a carrier's ring is full of fewer large ones.
const DefaultCallDepth = 16

// work is the row of streams.
var work = &engine.Workload{
	Kind: throughputkind.Kind, Name: Name, Stream: true, Numbered: true, Again: true, Idles: true, Has: engine.Members{BothWays: true, AppWork: true}, Sends: engine.StreamSends, Limits: engine.StreamLimits,
	Shape: drive.ThroughputShape, Layout: (*engine.Shape).StreamLayout, Config: drive.ThroughputConfig, Client: drive.NewFlow, Server: drive.NewFlow, Sleeps: drive.StreamSleeps,
	Result: drive.Throughput, Parameters: drive.ThroughputParameters,
	ByCall: rpc.CallsAs(Name, throughputkind.Kind, &rpc.StreamOfCalls, DefaultCallDepth),
}
