package latency

import (
	"github.com/rdmaperf/rdmaperf/reports"
)

// Results declares nothing: a rate of one operation at a time says what its latency says.
var Results = &reports.Workload{Name: "latency", Shown: []string{"p50", "p99", "mean"}}

// Kind is that of a ping-pong.
var Kind = &reports.Kind{Workload: "latency", Results: Results, Bare: true, PingPong: true}
