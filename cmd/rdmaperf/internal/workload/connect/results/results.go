package results

import "github.com/rdmaperf/rdmaperf/reports"

// Results declares the figures of these results.
var Results = &reports.Workload{
	Name: "connect", Title: "Connection set-up", Timed: true, Rated: true,
	Intro: "The life of a connection in stages. The first answer is there after the first three; an operation is all " +
		"until then.",
	Latencies: []reports.DimDef{
		{Name: "create", Help: "window, queues and queue pair, before the first packet"},
		{Name: "connect", Help: "the transport's set-up"},
		{Name: "first", Help: "the first round trip"},
		{Name: "disconnect", Help: "closing, until all is given back"},
		{Name: "full", Help: "all stages"},
	},
	Shown:    []string{"connect.p50", "connect.p99", "first.p50", "full.p50", "full.p99", "rate"},
	Detail:   func() reports.Detail { return new(Connect) },
	Describe: describe,
}

// Member implements reports.Detail.
func (*Connect) Member(string) string { return "connect" }

func describe(w *reports.Workload, r *reports.Result) {
	r.Note = "a thread for each connection at once, one listening thread"
	if r.Op == "call" {
		r.Note = "a thread for each connection at once, the server's threads as its stack has them"
	}
	if c := Of(r); c != nil {
		r.Latencies = reports.LatenciesOf(w.Latencies, &c.Create, &c.Connect, &c.FirstRoundTrip, &c.Disconnect, &c.Full)
	}
}
