package results

import "github.com/rdmaperf/rdmaperf/reports"

// Connect is the life of a connection in stages, in nanoseconds.
type Connect struct {
	AtOnce int `json:"at_once"` // connections set up concurrently
	// window, queues and QP, before the first packet; 0 of calls, where connect has it
	Create         reports.Latency `json:"create"`
	Connect        reports.Latency `json:"connect"`          // the transport's set-up
	FirstRoundTrip reports.Latency `json:"first_round_trip"` // a write and a read of the same bytes, or a call
	Disconnect     reports.Latency `json:"disconnect"`       // closing, until all is given back
	Full           reports.Latency `json:"full"`             // all of it
}

// Of is the detail of connection set-up, nil for any other.
func Of(r *reports.Result) *Connect { return reports.DetailOf[Connect](r) }
