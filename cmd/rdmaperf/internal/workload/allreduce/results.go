package allreduce

import (
	_ "embed"
	"fmt"
	"math"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

//go:embed schema.json
var schema string

// Allreduce is what an all-reduce took. Times are nanoseconds, of the slowest rank in each iteration.
type Allreduce struct {
	Ranks     int    `json:"ranks"`
	Algorithm string `json:"algorithm"` // ring, halving, doubling
	Arm       string `json:"arm"`       // none, cache, prereg, prereg+lazy
	Buffers   string `json:"buffers"`   // fresh: mapped and unmapped in each iteration; reused
	Offload   string `json:"offload"`
	Eager     int    `json:"eager_bytes"`   // up to which a message is copied, and registers nothing
	Segment   int    `json:"segment_bytes"` // of a long message
	Waiting   string `json:"waiting"`       // poll or sleep

	Total  *reports.Latency `json:"total"`         // all of the following
	Reduce *reports.Latency `json:"reduce"`        // the all-reduce itself
	Map    *reports.Latency `json:"map,omitempty"` // both buffers, with a touch of each page
	Unmap  *reports.Latency `json:"unmap,omitempty"`

	// BusBytesPerSecond is the size times 2(n-1)/n for n ranks over the mean time (NCCL's tests, PERFORMANCE.md).
	BusBytesPerSecond float64 `json:"bus_bytes_per_second"`

	CPUNs        int64            `json:"cpu_ns"`          // of all ranks in all iterations, with filling and comparing
	Cache        map[string]int64 `json:"cache,omitempty"` // counters of rank 0
	MostDeferred uint64           `json:"most_deferred_bytes,omitempty"`
	Absent       string           `json:"absent_arms,omitempty"`
}

// Of is the detail of an all-reduce, nil for any other.
func Of(r *reports.Result) *Allreduce { return reports.DetailOf[Allreduce](r) }

func (*Allreduce) Member(string) string { return "allreduce" }

var results = &reports.Workload{
	Name: Name, Title: "All-reduce",
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

var words = map[string]string{"ring": "ring", "halving": "recursive halving and doubling",
	"doubling": "recursive doubling"}

func describe(w *reports.Workload, r *reports.Result) {
	d := Of(r)
	waits := d.Waiting
	if waits == "sleep" {
		waits = "sleep for completions"
	}
	r.Note = fmt.Sprintf("%s, %d ranks in processes of their own that %s, float32 sums, messages up to %s are sent, "+
		"long ones written in segments of %s or more", words[r.Op], d.Ranks, waits, reports.SizeLabel(int64(d.Eager)),
		reports.SizeLabel(int64(d.Segment)))
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
