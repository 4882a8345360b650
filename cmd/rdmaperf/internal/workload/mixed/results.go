package mixed

import (
	_ "embed"
	"math"
	"strconv"

	"github.com/rdmaperf/rdmaperf/reports"
)

//go:embed schema.json
var schema string

// results declares the dimensions and figures of these results.
var results = &reports.Workload{
	Name: Name, Title: "Reads and writes", Timed: true, Rated: true,
	Intro: "Reads and writes of several sizes at random places. On stacks whose writes complete when they were " +
		"handed over, the latency of a write is no round trip, unless a read behind it ends it.",
	Dims: []reports.DimDef{
		{Name: "read_percent", Unit: "%", Help: "reads of all operations, as asked for"},
		{Name: "blocks", Help: "sizes of operations, as --bssplit has them"},
		{Name: "write_done", Help: "completion, or read: a write is done when a read behind it is"},
		{Name: "span_bytes", Unit: "B", Help: "in which reads, and as much for writes, have random places"},
	},
	Latencies: []reports.DimDef{{Name: "reads", Help: "reads"}, {Name: "writes", Help: "writes"}},
	Figures: []reports.FigureDef{
		{Name: "reads.rate", Quantity: reports.QuantityRate, Better: reports.More, Help: "reads a second"},
		{Name: "reads.bw", Quantity: reports.QuantityBytes, Better: reports.More, Help: "bytes read a second"},
		{Name: "reads.operations", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "reads in the window"},
		{Name: "writes.rate", Quantity: reports.QuantityRate, Better: reports.More, Help: "writes a second"},
		{Name: "writes.bw", Quantity: reports.QuantityBytes, Better: reports.More, Help: "bytes written a second"},
		{Name: "writes.operations", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "writes in the window"},
		{Name: "reads.share", Quantity: reports.QuantityRatio, Better: reports.Neither,
			Help: "reads of all operations, as they were"},
	},
	Shown: []string{"reads.p50", "reads.p99", "writes.p50", "writes.p99", "reads.rate", "writes.rate", "reads.bw",
		"writes.bw", "reads.share"},
	Schema:   schema,
	Detail:   func() reports.Detail { return new(Mixed) },
	Describe: describe,
}

// Member implements reports.Detail.
func (*Mixed) Member(string) string { return Name }

func describe(w *reports.Workload, r *reports.Result) {
	d := Of(r)
	r.Dims = reports.DimsOf(w.Dims, d.ReadPercent, d.Blocks, d.WriteDone, d.SpanBytes)
	var values []float64
	for i, side := range sides {
		x := side.of(d)
		r.Latencies = append(r.Latencies, reports.LatenciesOf(w.Latencies[i:], x.Latency)...)
		if x.Operations == 0 {
			values = append(values, math.NaN(), math.NaN(), math.NaN())
			continue
		}
		values = append(values, x.OperationsPerSecond, x.BytesPerSecond, float64(x.Operations))
	}
	r.Figures = reports.FiguresOf(w.Figures, append(values, d.AchievedReadPercent/100)...)
	for _, side := range sides {
		for _, b := range side.of(d).Blocks { // sizes are the user's, so that no list has their names
			r.Figures = append(r.Figures,
				reports.Figure{Name: side.name + ".size_" + strconv.FormatInt(b.SizeBytes, 10),
					Quantity: reports.QuantityCount, Better: reports.Neither, Value: float64(b.Operations)})
		}
	}
}
