package results

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// tables show the stages of each arm; of a working set its hits, of threads what each
// of them pays.
func tables(_ *reports.Grouped, results []*reports.Result, _ view.Units) []reports.Block {
	byPattern := map[string]func([]*reports.Result) reports.Block{"new": freshTable, "set": setTable, "replaced": staleTable, "threads": threadTable}
	table := byPattern[results[0].Op]
	if table == nil {
		table = costTable
	}
	rows := slices.Clone(results)
	slices.SortStableFunc(rows, func(a, b *reports.Result) int {
		x, y := Of(a), Of(b)
		return cmp.Or(cmp.Compare(x.Pages, y.Pages), cmp.Compare(x.Threads, y.Threads), cmp.Compare(a.SizeBytes, b.SizeBytes), cmp.Compare(x.WorkingSet, y.WorkingSet))
	})
	b := table(rows)
	if s := absent(rows); s != "" {
		b.Table.Rows = append(b.Table.Rows, view.Row{Span: s})
	}
	return []reports.Block{b}
}

// absent names the arms that are not possible here.
func absent(rows []*reports.Result) string {
	all := map[string]string{}
	for _, r := range rows {
		maps.Copy(all, Of(r).Absent)
	}
	var parts []string
	for _, arm := range slices.Sorted(maps.Keys(all)) {
		word := "arm "
		if strings.HasPrefix(arm, "source ") {
			word = ""
		}
		parts = append(parts, word+arm+" unsupported: "+view.Printable(all[arm]))
	}
	return strings.Join(parts, "; ")
}

// base is the arm without anything at the same place, for a ratio.
func base(rows []*reports.Result, r *reports.Result) *Register {
	d := Of(r)
	for _, o := range rows {
		if b := Of(o); b.Arm == "none" && o.SizeBytes == r.SizeBytes && b.Pages == d.Pages && b.Offload == d.Offload && b.Threads == d.Threads {
			return b
		}
	}
	return nil
}

// lower is how many times lower a median is than that of arm none.
func lower(b *Register, l *reports.Latency, of func(d *Register) *reports.Latency) view.Cell {
	if b == nil || of(b) == nil || l == nil || l.P50 == 0 {
		return view.Cell{Text: "-"}
	}
	return view.Cell{Text: view.Ratio(of(b).P50, l.P50)}
}

func p50(l *reports.Latency) view.Cell {
	if l == nil {
		return view.Cell{Text: "-"}
	}
	return view.Cell{Text: view.Number(l.P50/1000, 3)}
}

func p99(l *reports.Latency) view.Cell {
	if l == nil {
		return view.Cell{Text: "-"}
	}
	c := reports.PercentileCell(l, "p99")
	c.Text = view.Number(l.P99/1000, 3)
	return c
}

// named are the first cells of a row.
func named(r *reports.Result) []view.Cell {
	d := Of(r)
	return []view.Cell{{Text: view.Integer(r.SizeBytes)}, {Text: d.Pages}, {Text: d.Arm}, {Text: d.Offload}}
}

var names = []view.Column{{Name: "#bytes"}, {Name: "pages", Left: true}, {Name: "arm", Left: true}, {Name: "offload", Left: true}}

func costTable(rows []*reports.Result) reports.Block {
	t := &view.Table{Columns: append(slices.Clone(names), view.Column{Name: "register p50", Unit: "us"}, view.Column{Name: "p99", Unit: "us"}, view.Column{Name: "deregister p50", Unit: "us"}, view.Column{Name: "p99", Unit: "us"},
		view.Column{Name: "reg+use+dereg p50", Unit: "us"}, view.Column{Name: "batch"}, view.Column{Name: "register lower"}, view.Column{Name: "hit ratio"})}
	for _, r := range rows {
		d, b := Of(r), base(rows, r)
		ratio := view.Cell{Text: "-"}
		if d.Cache != nil {
			ratio.Text = view.Number(d.HitRatio, 4)
		}
		t.Add(append(named(r), p50(d.Register), p99(d.Register), p50(d.Deregister), p99(d.Deregister), p50(d.Full), view.Cell{Text: view.Integer(int64(d.Batch))},
			lower(b, d.Register, stages[1].of), ratio)...)
	}
	return reports.Block{Lead: "a sample of register and deregister is the mean of a batch; lower: how many times below arm none at the same size, pages and offload:", Table: t}
}

func freshTable(rows []*reports.Result) reports.Block {
	t := &view.Table{Columns: append(slices.Clone(names), view.Column{Name: "map p50", Unit: "us"}, view.Column{Name: "register p50", Unit: "us"}, view.Column{Name: "use p50", Unit: "us"}, view.Column{Name: "again", Unit: "us"},
		view.Column{Name: "deregister p50", Unit: "us"}, view.Column{Name: "unmap p50", Unit: "us"}, view.Column{Name: "p99", Unit: "us"}, view.Column{Name: "all p50", Unit: "us"}, view.Column{Name: "all lower"}, view.Column{Name: "most deferred"}, view.Column{Name: "of bytes"})}
	for _, r := range rows {
		d, b := Of(r), base(rows, r)
		most, bound := "-", "-"
		if d.Pool != nil && d.Pool.DeferredBound > 0 {
			most, bound = view.Integer(int64(d.Pool.MostDeferred)), view.Integer(int64(d.Pool.DeferredBound))
		}
		t.Add(append(named(r), p50(d.Map), p50(d.Register), p50(d.Use), p50(d.Again), p50(d.Deregister), p50(d.Unmap), p99(d.Unmap), p50(d.Full), lower(b, d.Full, stages[len(stages)-1].of), view.Cell{Text: most}, view.Cell{Text: bound})...)
	}
	return reports.Block{Lead: "map, register, use, deregister, unmap, each once for every buffer; fresh pages are found by whoever touches them first, the mapping, the registration or, with odp, the device at its first use; again is a second use, when they are there:", Table: t}
}

// staleTable shows what each source notices, and what that costs.
func staleTable(rows []*reports.Result) reports.Block {
	t := &view.Table{Columns: []view.Column{{Name: "#bytes"}, {Name: "source", Left: true}, {Name: "hit p50", Unit: "us"}, {Name: "munmap p50", Unit: "us"}, {Name: "replaced"}, {Name: "stale"}, {Name: "what notices", Left: true}}}
	for _, r := range rows {
		d := Of(r)
		t.Add(view.Cell{Text: view.Integer(r.SizeBytes)}, view.Cell{Text: d.Source}, p50(d.Register), p50(d.Unmap), view.Cell{Text: view.Integer(d.Replaced)}, view.Cell{Text: view.Integer(d.Stale)},
			view.Cell{Text: view.Printable(d.SourceSays)})
	}
	return reports.Block{Lead: "memory of others is registered through the cache, unmapped by a system call and mapped again at its address; stale: the device then wrote to the old pages:", Table: t}
}

func setTable(rows []*reports.Result) reports.Block {
	t := &view.Table{Columns: append(slices.Clone(names), view.Column{Name: "working set"}, view.Column{Name: "capacity"}, view.Column{Name: "hit ratio"}, view.Column{Name: "evictions"},
		view.Column{Name: "register mean", Unit: "us"}, view.Column{Name: "p50", Unit: "us"}, view.Column{Name: "p99", Unit: "us"})}
	for _, r := range rows {
		d := Of(r)
		hits, mean := "-", "-"
		if d.SetGets > 0 {
			hits = view.Number(float64(d.SetHits)/float64(d.SetGets), 4)
		}
		if d.Register != nil {
			mean = view.Number(d.Register.Mean/1000, 3)
		}
		t.Add(append(named(r), view.Cell{Text: view.Integer(int64(d.WorkingSet))}, view.Cell{Text: view.Integer(int64(d.Capacity))}, view.Cell{Text: hits}, view.Cell{Text: view.Integer(d.Cache["evictions"])},
			view.Cell{Text: mean}, p50(d.Register), p99(d.Register))...)
	}
	return reports.Block{Lead: "buffers of a working set at random; the cache keeps so many regions and gives up the least recently used:", Table: t}
}

func threadTable(rows []*reports.Result) reports.Block {
	t := &view.Table{Columns: append(slices.Clone(names), view.Column{Name: "threads"}, view.Column{Name: "register p50", Unit: "us"}, view.Column{Name: "p99", Unit: "us"}, view.Column{Name: "deregister p50", Unit: "us"},
		view.Column{Name: "each pair", Unit: "us"}, view.Column{Name: "pairs", Unit: "/s"}, view.Column{Name: "register lower"})}
	for _, r := range rows {
		d, b := Of(r), base(rows, r)
		rate := "-"
		if d.EachNs > 0 {
			rate = view.Number(float64(d.Threads)*1e9/d.EachNs, 0)
		}
		t.Add(append(named(r), view.Cell{Text: view.Integer(int64(d.Threads))}, p50(d.Register), p99(d.Register), p50(d.Deregister), view.Cell{Text: view.Number(d.EachNs/1000, 3)}, view.Cell{Text: rate},
			lower(b, d.Register, stages[1].of))...)
	}
	return reports.Block{Lead: "each thread registers a buffer of its own again and again; more threads than CPUs wait for each other:", Table: t}
}
