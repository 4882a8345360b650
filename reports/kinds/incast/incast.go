package incast

import (
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Incast is how one server's throughput was shared among many clients. A rate is
// that of one client over its own window.
type Incast struct {
	Clients           int     `json:"clients"`
	MinBytesPerSecond float64 `json:"min_bytes_per_second"`
	MaxBytesPerSecond float64 `json:"max_bytes_per_second"`

	// Jain is the fairness index of the clients' rates (Jain, Chiu, Hawe 1984): 1 when
	// all have the same, 1/n when one of n has everything.
	Jain      float64       `json:"jain"`
	PerClient []ClientShare `json:"per_client,omitempty"`
}

// ClientShare is one client's part.
type ClientShare struct {
	Operations     int64   `json:"operations"`
	DurationNs     int64   `json:"duration_ns"`
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// JainIndex is the square of the sum over n times the sum of the squares; 0 when
// nobody has anything.
func JainIndex(rates []float64) float64 {
	most := 0.0
	for _, r := range rates {
		most = max(most, r)
	}
	if !(most > 0) {
		return 0
	}
	var sum, squares float64
	for _, r := range rates {
		r /= most // squares of large rates must not overflow
		sum += r
		squares += r * r
	}
	return sum * sum / (float64(len(rates)) * squares)
}

// Kind describes these results.
var Kind = &reports.Kind{
	Workload: "incast",
	Results:  Results,
	Bare:     true,
	Conditions: func(l reports.Load) string {
		parts := []string{"depth " + view.Integer(int64(l.Depth))}
		if !l.Sweep {
			parts = append(parts, view.Plural(int64(l.QPs), l.Connections()))
		}
		threads := "a thread for each client, one at the server"
		if l.Op == "call" {
			threads = "calls outstanding on a connection of each client, the server's threads as its stack has them"
		}
		return strings.Join(append(append(parts, threads), l.Manner()...), ", ")
	},
	Connection: "client",
	OwnThreads: true,
	Medians:    medians,
	Tables:     tables,
	PageTables: pageTables,
}

func slowestClient(in *Incast) float64 { return in.MinBytesPerSecond }

func fastestClient(in *Incast) float64 { return in.MaxBytesPerSecond }

func jainOf(in *Incast) float64 { return in.Jain }

// medians has the medians of the repeats; whose share was which is lost.
func medians(all []*reports.Result) any {
	first := Of(all[0])
	of := func(figure func(in *Incast) float64) float64 {
		return reports.MedianOver(all, func(r *reports.Result) float64 { return figure(Of(r)) })
	}
	return &Incast{Clients: first.Clients, MinBytesPerSecond: of(slowestClient), MaxBytesPerSecond: of(fastestClient), Jain: of(jainOf)}
}

// tables show how even the shares were.
func tables(_ *reports.Grouped, results []*reports.Result, u view.Units) []reports.Block {
	t := &view.Table{Columns: []view.Column{{Name: "clients"}, {Name: "#bytes"}, {Name: "BW slowest", Unit: u.Name()}, {Name: "BW fastest", Unit: u.Name()}, {Name: "Jain index"}}}
	for _, r := range results {
		if in := Of(r); in != nil {
			t.Add(view.Cell{Text: view.Integer(int64(in.Clients))}, view.Cell{Text: view.Integer(r.SizeBytes)},
				view.Cell{Text: u.Bandwidth(in.MinBytesPerSecond)}, view.Cell{Text: u.Bandwidth(in.MaxBytesPerSecond)}, view.Cell{Text: view.Number(in.Jain, 4)})
		}
	}
	return []reports.Block{{Lead: "shares of the clients; the Jain index is 1 when all are the same:", Table: t}}
}

// pageTables is the same for a page.
func pageTables(k reports.Condition, samples []*reports.Measured) []view.Grid {
	t := view.Grid{Caption: k.Title() + ": shares of the clients", Note: k.Describe(),
		Head: view.HeadCells("stack", "size", "clients", "slowest MiB/s", "fastest MiB/s", "Jain index")}
	for _, s := range samples {
		if in := Of(s.Result); in != nil {
			t.Rows = append(t.Rows, []view.GridCell{view.NameCell(s.Name()), view.NumberCell(reports.SizeLabel(s.SizeBytes)), view.NumberCell(view.Integer(int64(in.Clients))),
				view.NumberCell(view.Bandwidth(in.MinBytesPerSecond, false)), view.NumberCell(view.Bandwidth(in.MaxBytesPerSecond, false)), view.NumberCell(view.Number(in.Jain, 4))})
		}
	}
	return []view.Grid{t}
}

// Of is the detail of an incast, nil for any other.
func Of(r *reports.Result) *Incast { return reports.DetailOf[Incast](r) }
