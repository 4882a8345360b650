package results

import (
	_ "embed"
	"fmt"
	"math"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

//go:embed schema.json
var schema string

// Results declares the dimensions and figures of these results.
var Results = &reports.Workload{
	Name: "allreduce", Title: "All-reduce",
	Intro: "Times are those of the slowest rank of each iteration, with mapping and unmapping of fresh buffers; " +
		"reused ones stay. Bus bandwidth is the size times 2(n-1)/n over the mean. Below the eager size nothing is " +
		"registered.",
	Dims: []reports.DimDef{
		{Name: "ranks", Help: "processes that take part"},
		{Name: "arm", Help: "how memory is registered: none, cache, prereg, prereg+lazy"},
		{Name: "buffers", Help: "fresh: mapped and unmapped in each iteration; reused"},
		{Name: "offload", Help: "detour of each call of the driver"},
		{Name: "eager_bytes", Unit: "B", Help: "up to which a message is copied, and registers nothing"},
		{Name: "segment_bytes", Unit: "B", Help: "least part of a long message"},
		{Name: "waiting", Help: "for completions: poll or sleep"},
	},
	Latencies: []reports.DimDef{
		{Name: "total", Help: "mapping, all-reduce and unmapping, of the slowest rank"},
		{Name: "reduce", Help: "the all-reduce itself"},
		{Name: "map", Help: "mapping both buffers, with a touch of each page"},
		{Name: "unmap", Help: "unmapping both buffers"},
	},
	Figures: []reports.FigureDef{
		{Name: "bus.bw", Quantity: reports.QuantityBytes, Better: reports.More,
			Help: "size times 2(n-1)/n for n ranks over the mean time, as NCCL's tests count it"},
		{Name: "cpu.ranks", Quantity: reports.QuantityTime,
			Help: "processor time of all ranks, with filling and comparing"},
		{Name: "deferred.most", Quantity: reports.QuantityMemory, Help: "most that was unmapped and still registered"},
	},
	Shown:    []string{"total.p50", "total.mean", "total.p99", "reduce.p50", "map.p50", "unmap.p50", "bus.bw"},
	Schema:   schema,
	Detail:   func() reports.Detail { return new(Allreduce) },
	Describe: describe,
}

// Member implements reports.Detail.
func (*Allreduce) Member(string) string { return "allreduce" }

func describe(w *reports.Workload, r *reports.Result) {
	d := Of(r)
	r.Note = words[r.Op] + ", " +
		fmt.Sprintf("%d ranks in processes of their own that %s, float32 sums, messages up to %s are sent, long ones "+
			"written in segments of %s or more",
			d.Ranks, waits[d.Waiting], reports.SizeLabel(int64(d.Eager)), reports.SizeLabel(int64(d.Segment)))
	if d.Absent != "" {
		r.Note += "; " + view.Printable(d.Absent)
	}
	r.Dims = reports.DimsOf(w.Dims, d.Ranks, d.Arm, d.Buffers, d.Offload, d.Eager, d.Segment, d.Waiting)
	r.Latencies = reports.LatenciesOf(w.Latencies, d.Total, d.Reduce, d.Map, d.Unmap)
	deferred := math.NaN()
	if d.MostDeferred > 0 {
		deferred = float64(d.MostDeferred)
	}
	r.Figures = reports.FiguresOf(w.Figures, d.BusBytesPerSecond, float64(d.CPUNs), deferred)
}
