package throughput

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Of is the detail of a bidirectional stream, nil for any other.
func Of(r *reports.Result) *drive.Bidirectional { return reports.DetailOf[drive.Bidirectional](r) }

// results declares the figures of these results.
var results = &reports.Workload{
	Name: Name, Title: "Throughput", Rated: true,
	Dims: []reports.DimDef{{Name: "directions", Help: "both, where each side sends while the other does"}},
	Figures: []reports.FigureDef{
		{Name: "from_client.bw", Quantity: reports.QuantityBytes, Better: reports.More,
			Help: "payload a second from the client, by its own clock"},
		{Name: "from_client.rate", Quantity: reports.QuantityRate, Better: reports.More,
			Help: "operations a second of the client"},
		{Name: "from_client.operations", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "completed in the client's window"},
		{Name: "from_client.duration", Quantity: reports.QuantityTime, Better: reports.Neither,
			Help: "of the client's window"},
		{Name: "from_server.bw", Quantity: reports.QuantityBytes, Better: reports.More,
			Help: "payload a second from the server, by its own clock"},
		{Name: "from_server.rate", Quantity: reports.QuantityRate, Better: reports.More,
			Help: "operations a second of the server"},
		{Name: "from_server.operations", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "completed in the server's window"},
		{Name: "from_server.duration", Quantity: reports.QuantityTime, Better: reports.Neither,
			Help: "of the server's window"},
	},
	Shown: []string{"bw", "rate", "p50", "p99", "from_client.bw", "from_server.bw", "from_client.rate",
		"from_server.rate"},
	Detail:   func() reports.Detail { return new(drive.Bidirectional) },
	Describe: describe,
}

func describe(w *reports.Workload, r *reports.Result) {
	b := Of(r)
	if b == nil {
		return
	}
	r.Dims = reports.DimsOf(w.Dims, "both")
	var values []float64
	for _, d := range []drive.Direction{b.FromClient, b.FromServer} {
		values = append(values, d.BytesPerSecond, d.OperationsPerSecond, float64(d.Operations), float64(d.DurationNs))
	}
	r.Figures = reports.FiguresOf(w.Figures, values...)
}
