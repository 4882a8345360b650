package throughput

import (
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Of is the detail of a bidirectional stream, nil for any other.
func Of(r *reports.Result) *Bidirectional { return reports.DetailOf[Bidirectional](r) }

// Bidirectional is what each side sent while the other did.
type Bidirectional struct {
	FromClient Direction `json:"from_client"`
	FromServer Direction `json:"from_server"`
}

// Direction is one side's stream over its own window, by its own clock.
type Direction struct {
	Operations          int64   `json:"operations"`
	DurationNs          int64   `json:"duration_ns"`
	BytesPerSecond      float64 `json:"bytes_per_second"`
	OperationsPerSecond float64 `json:"operations_per_second"`
}

// Kind is that of streams in one direction, and with detail in both.
var Kind = &reports.Kind{
	Workload: "throughput",
	Results:  Results,
	Bare:     true,
	Share:    func(r *reports.Result) any { return Of(r) != nil },
	What: func(l reports.Load) string {
		what := strings.TrimSpace(l.Workload + " " + l.Op)
		if l.Share == true {
			what += " in both directions"
		}
		return what
	},
	Directions: func(r *reports.Result) []reports.Direction {
		b := Of(r)
		if b == nil {
			return nil
		}
		one := func(d Direction) *reports.Result {
			return &reports.Result{SizeBytes: r.SizeBytes, Operations: d.Operations, DurationNs: d.DurationNs,
				Throughput: &reports.Throughput{BytesPerSecond: d.BytesPerSecond, OperationsPerSecond: d.OperationsPerSecond}}
		}
		return []reports.Direction{{Name: "client to server", Result: one(b.FromClient)}, {Name: "server to client", Result: one(b.FromServer)}}
	},
	Medians: medians,
}

// medians has the medians of each direction.
func medians(all []*reports.Result) any {
	first := Of(all[0])
	b := *first
	side := func(d *Direction, from func(b *Bidirectional) *Direction) {
		of := func(figure func(d *Direction) float64) float64 {
			return reports.MedianOver(all, func(r *reports.Result) float64 { return figure(from(Of(r))) })
		}
		d.Operations = int64(of(func(d *Direction) float64 { return float64(d.Operations) }))
		d.DurationNs = int64(of(func(d *Direction) float64 { return float64(d.DurationNs) }))
		d.BytesPerSecond = of(func(d *Direction) float64 { return d.BytesPerSecond })
		d.OperationsPerSecond = of(func(d *Direction) float64 { return d.OperationsPerSecond })
	}
	side(&b.FromClient, func(b *Bidirectional) *Direction { return &b.FromClient })
	side(&b.FromServer, func(b *Bidirectional) *Direction { return &b.FromServer })
	return &b
}
