package results

import "github.com/rdmaperf/rdmaperf/reports"

// Results declares the figures of these results.
var Results = &reports.Workload{
	Name: "incast", Title: "Incast", Timed: true, Rated: true,
	Intro: "Many clients send to one server. The Jain index is 1 when all have the same rate, 1/n when one of n has " +
		"everything.",
	Figures: []reports.FigureDef{
		{Name: "slowest.bw", Quantity: reports.QuantityBytes, Better: reports.More,
			Help: "payload a second of the slowest client"},
		{Name: "fastest.bw", Quantity: reports.QuantityBytes, Better: reports.More,
			Help: "payload a second of the fastest client"},
		{Name: "jain", Quantity: reports.QuantityRatio, Better: reports.More,
			Help: "fairness index of the clients' rates: 1 when all have the same, 1/n when one of n has everything"},
	},
	Shown:    []string{"p50", "p99", "mean", "bw", "rate", "slowest.bw", "fastest.bw", "jain"},
	Detail:   func() reports.Detail { return new(Incast) },
	Describe: describe,
}

// Member implements reports.Detail.
func (*Incast) Member(string) string { return "incast" }

func describe(w *reports.Workload, r *reports.Result) {
	r.Note = "a thread for each client, one at the server"
	if r.Op == "call" {
		r.Note = "calls outstanding on a connection of each client, the server's threads as its stack has them"
	}
	if in := Of(r); in != nil {
		r.Figures = reports.FiguresOf(w.Figures, in.MinBytesPerSecond, in.MaxBytesPerSecond, in.Jain)
	}
}
