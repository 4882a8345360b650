package mixed

import (
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

// What ends a write, as Mixed.WriteDone spells it.
const (
	doneByCompletion = "completion"
	doneByRead       = "read"
)

// parameters are the effective options.
func parameters(o *Options, p map[string]any) {
	p["read_percent"], p["blocks"], p["span_bytes"], p["write_flush"] = o.ReadPercent, o.blocks(), o.Span, o.Flush
	p["barrier"] = "answer to a read behind the last operation"
}

// result completes the result: all operations together, and each direction by itself.
func result(m *engine.Measurement, o *Options, res *reports.Result, out *engine.Outcome) {
	res.Op = op
	tallies, _ := out.Detail.([directions]tally)
	d := &Mixed{ReadPercent: o.ReadPercent, Blocks: o.blocks(), SpanBytes: int64(o.Span), WriteDone: doneByCompletion}
	if o.Flush {
		d.WriteDone = doneByRead
	}
	var bytes int64
	for i, to := range []*Direction{&d.Reads, &d.Writes} {
		of := [directions][]Block{o.Reads, o.Writes}[i]
		t := &tallies[i]
		*to = direction(t, of, out)
		bytes += t.bytes
	}
	d.AchievedReadPercent = share(d.Reads.Operations, d.Writes.Operations)
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
	rates := reports.NewThroughput(t.bytes, t.ops, time.Duration(out.Window))
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

// share is a in percent of both, 0 for none.
func share(a, b int64) float64 {
	if a+b == 0 {
		return 0
	}
	return 100 * float64(a) / float64(a+b)
}
