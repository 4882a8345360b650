package latency

import (
	"github.com/rdmaperf/rdmaperf/reports"
)

// Kind is that of a ping-pong.
var Kind = &reports.Kind{Workload: "latency", Bare: true, PingPong: true}
