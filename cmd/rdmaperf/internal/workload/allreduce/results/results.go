package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Allreduce is what an all-reduce took. Times are nanoseconds, of the slowest rank in
// each iteration.
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

	// BusBytesPerSecond is the size times 2(n-1)/n for n ranks over the mean time: what
	// the slowest link of a ring carries, as NCCL's tests count it (PERFORMANCE.md there).
	BusBytesPerSecond float64 `json:"bus_bytes_per_second"`

	CPUNs        int64            `json:"cpu_ns"`          // of all ranks in all iterations, with filling and comparing
	Cache        map[string]int64 `json:"cache,omitempty"` // counters of rank 0
	MostDeferred uint64           `json:"most_deferred_bytes,omitempty"`
	Absent       string           `json:"absent_arms,omitempty"`
}

// Of is the detail of an all-reduce, nil for any other.
func Of(r *reports.Result) *Allreduce { return reports.DetailOf[Allreduce](r) }

// share is what stands in the conditions of a table.
type share struct {
	ranks, eager, segment int
	waiting               string
}

type stage struct {
	name string
	of   func(d *Allreduce) *reports.Latency
}

var stages = []stage{
	{"total", func(d *Allreduce) *reports.Latency { return d.Total }},
	{"reduce", func(d *Allreduce) *reports.Latency { return d.Reduce }},
	{"map", func(d *Allreduce) *reports.Latency { return d.Map }},
	{"unmap", func(d *Allreduce) *reports.Latency { return d.Unmap }},
}

func (s stage) latency(r *reports.Result) *reports.Latency {
	if d := Of(r); d != nil {
		return s.of(d)
	}
	return nil
}

// variant tells apart what stands in one table.
func variant(r *reports.Result) string {
	d := Of(r)
	s := d.Arm + ", " + d.Buffers
	if d.Offload != "none" {
		s += ", offload " + d.Offload
	}
	return s
}

// Kind describes these results.
var Kind = &reports.Kind{
	Workload: "allreduce",
	Results:  Results,
	Called:   "All-reduce",
	Share: func(r *reports.Result) any {
		d := Of(r)
		return share{d.Ranks, d.Eager, d.Segment, d.Waiting}
	},
	What:  func(l reports.Load) string { return "all-reduce, " + words[l.Op] },
	Title: func(l reports.Load) string { return "All-reduce, " + words[l.Op] },
	Conditions: func(l reports.Load) string {
		s, _ := l.Share.(share)
		return fmt.Sprintf("%d ranks in processes of their own that %s, float32 sums, messages up to %s are sent, long ones written in segments of %s or more", s.ranks, waits[s.waiting], reports.SizeLabel(int64(s.eager)), reports.SizeLabel(int64(s.segment)))
	},
	OwnThreads:    true,
	Variant:       variant,
	NamesRows:     true,
	Shape:         func(r *reports.Result) string { return fmt.Sprintf("%d ranks, %s", Of(r).Ranks, variant(r)) },
	Medians:       medians,
	OwnLatency:    true,
	OwnRate:       true,
	OwnTable:      true,
	OwnCharts:     true,
	OwnSideBySide: true,
	PageBlocks:    true,
	Tables:        tables,
	Sections:      []*reports.PageSection{{Rank: 41, Of: section}},
}

var (
	words = map[string]string{"ring": "ring", "halving": "recursive halving and doubling", "doubling": "recursive doubling"}
	waits = map[string]string{"poll": "poll", "sleep": "sleep for completions"}
)

// medians has the medians of the repeats.
func medians(all []*reports.Result) any {
	d := *Of(all[0])
	for i, to := range []**reports.Latency{&d.Total, &d.Reduce, &d.Map, &d.Unmap} {
		if *to != nil {
			*to = reports.MedianLatencies(all, stages[i].latency)
		}
	}
	d.BusBytesPerSecond = reports.MedianOver(all, func(r *reports.Result) float64 { return Of(r).BusBytesPerSecond })
	return &d
}

// base is the arm without anything at the same place.
func base(rows []*reports.Result, r *reports.Result) *Allreduce {
	d := Of(r)
	for _, o := range rows {
		if b := Of(o); b.Arm == "none" && o.SizeBytes == r.SizeBytes && b.Buffers == d.Buffers && b.Offload == d.Offload {
			return b
		}
	}
	return nil
}

// tables show the time of each arm, and how many times faster it is than without any.
func tables(_ *reports.Grouped, results []*reports.Result, u view.Units) []reports.Block {
	t := &view.Table{Columns: []view.Column{{Name: "#bytes"}, {Name: "buffers", Left: true}, {Name: "arm", Left: true}, {Name: "offload", Left: true}, {Name: "#iterations"},
		{Name: "p50", Unit: "us"}, {Name: "mean", Unit: "us"}, {Name: "p99", Unit: "us"}, {Name: "all-reduce p50", Unit: "us"}, {Name: "map p50", Unit: "us"}, {Name: "unmap p50", Unit: "us"},
		{Name: "bus BW", Unit: u.Name()}, {Name: "faster"}}}
	rows := slices.Clone(results)
	slices.SortStableFunc(rows, func(a, b *reports.Result) int {
		return cmp.Or(cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(Of(a).Buffers, Of(b).Buffers))
	})
	p50 := func(l *reports.Latency) view.Cell {
		if l == nil {
			return view.Cell{Text: "-"}
		}
		return view.Cell{Text: view.Usec(l.P50)}
	}
	var absent []string
	for _, r := range rows {
		d := Of(r)
		faster := "-"
		if b := base(rows, r); b != nil && d.Total.P50 > 0 {
			faster = view.Ratio(b.Total.P50, d.Total.P50)
		}
		t.Add(view.Cell{Text: view.Integer(r.SizeBytes)}, view.Cell{Text: d.Buffers}, view.Cell{Text: d.Arm}, view.Cell{Text: d.Offload}, view.Cell{Text: view.Integer(r.Operations)},
			p50(d.Total), view.Cell{Text: view.Usec(d.Total.Mean)}, reports.PercentileCell(d.Total, "p99"), p50(d.Reduce), p50(d.Map), p50(d.Unmap),
			view.Cell{Text: u.Bandwidth(d.BusBytesPerSecond)}, view.Cell{Text: faster})
		if d.Absent != "" && !slices.Contains(absent, d.Absent) {
			absent = append(absent, d.Absent)
		}
	}
	if len(absent) > 0 {
		t.Rows = append(t.Rows, view.Row{Span: view.Printable(strings.Join(absent, "; "))})
	}
	return []reports.Block{{Lead: "the slowest rank of each iteration, with mapping and unmapping of fresh buffers; bus BW is size times 2(n-1)/n over the mean; faster: than arm none at the same size and buffers:", Table: t}}
}
