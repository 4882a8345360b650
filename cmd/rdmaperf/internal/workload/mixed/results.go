package mixed

import (
	_ "embed"
	"math"
	"strconv"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Mixed is what reads and writes got in one window. Latencies are from the post or the intended start, until the
// completion or the read behind.
type Mixed struct {
	ReadPercent         int     `json:"read_percent"` // asked for
	AchievedReadPercent float64 `json:"achieved_read_percent"`
	Blocks              string  `json:"blocks"` // as --bssplit has them
	SpanBytes           int64   `json:"span_bytes"`
	WriteDone           string  `json:"write_done"` // completion or read

	Reads  Direction `json:"reads"`
	Writes Direction `json:"writes"`
}

// Direction is one of both. Latency is nil where nothing was measured.
type Direction struct {
	Operations          int64            `json:"operations"`
	OperationsPerSecond float64          `json:"operations_per_second"`
	BytesPerSecond      float64          `json:"bytes_per_second"`
	Latency             *reports.Latency `json:"latency,omitempty"`
	Blocks              []BlockCount     `json:"blocks"`
}

// BlockCount is how many operations had a size, and how many of a hundred were to.
type BlockCount struct {
	SizeBytes  int64 `json:"size_bytes"`
	Percent    int   `json:"percent"`
	Operations int64 `json:"operations"`
}

// Of is the detail of a mix of reads and writes, nil for any other.
func Of(r *reports.Result) *Mixed { return reports.DetailOf[Mixed](r) }

// sides are both directions, in the order of tables.
func (d *Mixed) sides() [directions]*Direction { return [directions]*Direction{&d.Reads, &d.Writes} }

// What ends a write, as Mixed.WriteDone spells it.
const (
	doneByCompletion = "completion"
	doneByRead       = "read"
)

func result(m *engine.Measurement, o *Options, res *reports.Result, out *engine.Outcome) {
	res.Op = op
	tallies, _ := out.Detail.([directions]tally)
	d := &Mixed{ReadPercent: o.ReadPercent, Blocks: o.blocks(), SpanBytes: int64(o.Span), WriteDone: doneByCompletion}
	if o.Flush {
		d.WriteDone = doneByRead
	}
	var bytes int64
	for i, to := range d.sides() {
		*to = direction(&tallies[i], o.blocksOf()[i], out)
		bytes += tallies[i].bytes
	}
	d.AchievedReadPercent = 100 * float64(d.Reads.Operations) / float64(max(d.Reads.Operations+d.Writes.Operations, 1))
	res.Detail = d
	res.Throughput = reports.NewThroughput(bytes, out.Ops, out.Window)
	if out.Rec != nil && out.Rec.Count() > 0 {
		l := out.Rec.Snapshot()
		res.Latency = &l
	}
	if out.Service != nil && m.Sh.Rate > 0 {
		service := out.Service.Snapshot()
		res.LatencyService = &service
		res.OpenLoop = drive.OpenLoopOf(m, out, m.Sh.Rate, m.Sh.Arrivals == engine.ArrivalsPoisson, out.Service.Count(),
			out.Window)
	}
}

func direction(t *tally, blocks []Block, out *engine.Outcome) Direction {
	rates := reports.NewThroughput(t.bytes, t.ops, out.Window)
	d := Direction{Operations: t.ops, OperationsPerSecond: rates.OperationsPerSecond,
		BytesPerSecond: rates.BytesPerSecond}
	for i, n := range t.blocks {
		d.Blocks = append(d.Blocks, BlockCount{SizeBytes: int64(blocks[i].Size), Percent: blocks[i].Percent,
			Operations: n})
	}
	if t.rec != nil && t.rec.Count() > 0 {
		l := t.rec.Snapshot()
		d.Latency = &l
	}
	return d
}

//go:embed schema.json
var schema string

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

func (*Mixed) Member(string) string { return Name }

func describe(w *reports.Workload, r *reports.Result) {
	d := Of(r)
	r.Dims = reports.DimsOf(w.Dims, d.ReadPercent, d.Blocks, d.WriteDone, d.SpanBytes)
	var values []float64
	for i, x := range d.sides() {
		r.Latencies = append(r.Latencies, reports.LatenciesOf(w.Latencies[i:], x.Latency)...)
		if x.Operations == 0 {
			values = append(values, math.NaN(), math.NaN(), math.NaN())
			continue
		}
		values = append(values, x.OperationsPerSecond, x.BytesPerSecond, float64(x.Operations))
	}
	r.Figures = reports.FiguresOf(w.Figures, append(values, d.AchievedReadPercent/100)...)
	for i, x := range d.sides() {
		for _, b := range x.Blocks { // sizes are the user's, so that no list has their names
			r.Figures = append(r.Figures,
				reports.Figure{Name: w.Latencies[i].Name + ".size_" + strconv.FormatInt(b.SizeBytes, 10),
					Quantity: reports.QuantityCount, Better: reports.Neither, Value: float64(b.Operations)})
		}
	}
}
