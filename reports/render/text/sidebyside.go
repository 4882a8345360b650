package text

import (
	"cmp"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// sidePoint gathers what one stack reached at one size. Repeats of the same
// point are collected and their median is shown.
type sidePoint struct {
	size  int64
	stack string
}

type sideSamples struct {
	a, b []float64 // p50 and p99, or bandwidth and message rate
	few  bool      // the p99 rests on too few samples
}

// sideTable holds the results that share a load and a kind of figure, which is
// what makes a ratio mean something.
type sideTable struct {
	reports.Load
	latency bool
	rate    float64  // of an open loop
	stacks  []string // by first appearance; the first is the base of all ratios
	sizes   []int64  // by first appearance
	points  map[sidePoint]*sideSamples
}

// sideBySide prints stacks that ran the same load beside each other, and nothing
// when there is none.
func (p *printer) sideBySide(results []reports.Result) {
	all := []*reports.SideBySide{commonSides, mixedSides}
	for i := range results {
		for _, s := range results[i].AnyKind().SideBySide {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *reports.SideBySide) int { return cmp.Compare(a.Rank, b.Rank) })
	for _, s := range all {
		for _, b := range s.Tables(results, view.Units{Gbits: p.Gbits}) {
			p.line("")
			p.styled(bold, b.Title)
			p.wrapped(b.Conditions)
			for _, l := range b.Lines {
				p.wrapped(l)
			}
			p.table(b.Table)
		}
	}
}

// commonSides hold latency and throughput against each other at the same size.
var commonSides = &reports.SideBySide{Rank: 0, Tables: func(results []reports.Result, u view.Units) []reports.SideBlock {
	var out []reports.SideBlock
	for _, s := range sideTables(results) {
		if b := s.block(u); len(b.Table.Rows) > 0 {
			out = append(out, b)
		}
	}
	return out
}}

func sideTables(results []reports.Result) []*sideTable {
	type key struct {
		reports.Load
		Latency bool
		Rate    float64
	}
	var tables []*sideTable
	index := map[key]*sideTable{}
	for i := range results {
		r := &results[i]
		if r.AnyKind().OwnSideBySide || r.Latency == nil && r.Throughput == nil {
			continue
		}
		k := key{Load: reports.LoadOf(r), Latency: r.Latency != nil, Rate: r.Rate}
		s := index[k]
		if s == nil {
			s = &sideTable{Load: k.Load, latency: k.Latency, rate: k.Rate, points: map[sidePoint]*sideSamples{}}
			index[k] = s
			tables = append(tables, s)
		}
		s.add(r)
	}
	return tables
}

func (s *sideTable) add(r *reports.Result) {
	if !slices.Contains(s.stacks, r.Stack) {
		s.stacks = append(s.stacks, r.Stack)
	}
	if !slices.Contains(s.sizes, r.SizeBytes) {
		s.sizes = append(s.sizes, r.SizeBytes)
	}
	at := sidePoint{r.SizeBytes, r.Stack}
	if s.points[at] == nil {
		s.points[at] = &sideSamples{}
	}
	pt := s.points[at]
	if s.latency {
		pt.a, pt.b = append(pt.a, r.Latency.P50), append(pt.b, r.Latency.P99)
		pt.few = pt.few || reports.PercentileCell(r.Latency, "p99").Mark
	} else {
		pt.a, pt.b = append(pt.a, r.Throughput.BytesPerSecond), append(pt.b, r.Throughput.OperationsPerSecond)
	}
}

func (s *sideTable) block(u view.Units) reports.SideBlock {
	t := &view.Table{Columns: []view.Column{{Name: "#bytes"}, {Name: "stack", Left: true},
		{Name: "p50", Unit: "us"}, {Name: "p99", Unit: "us"}, {Name: "p50 ratio"}, {Name: "p99 ratio"}}}
	if !s.latency {
		t.Columns = slices.Concat(t.Columns[:2], throughputColumns(u.Gbits)[2:], []view.Column{{Name: "BW ratio"}, {Name: "rate ratio"}})
	}
	names, legend := numbered(s.stacks)
	repeated := false
	for _, size := range s.sizes {
		base := s.points[sidePoint{size, s.stacks[0]}]
		var rows []view.Row
		for _, stack := range s.stacks {
			pt := s.points[sidePoint{size, stack}]
			if pt == nil {
				continue
			}
			repeated = repeated || len(pt.a) > 1
			a, b := reports.Median(pt.a), reports.Median(pt.b)
			ratioA, ratioB := "-", "-"
			if base != nil {
				ratioA, ratioB = view.Ratio(a, reports.Median(base.a)), view.Ratio(b, reports.Median(base.b))
			}
			cells := []view.Cell{{Text: view.Integer(size)}, {Text: names[stack]}, {Text: view.Usec(a)}, {Text: view.Usec(b), Mark: pt.few}, {Text: ratioA}, {Text: ratioB}}
			if !s.latency {
				cells[2].Text, cells[3].Text = u.Bandwidth(a), view.Number(b/1e3, 3)
			}
			rows = append(rows, view.Row{Cells: cells})
		}
		if len(rows) > 1 { // a stack alone is not side by side
			t.Rows = append(t.Rows, rows...)
		}
	}
	return reports.SideBlock{Title: "side by side: " + s.What() + ", ratio to " + s.stacks[0], Conditions: reports.BesideConditions(s.Load, s.rate, repeated), Lines: legend, Table: t}
}

// longName is of a stack whose rows would each take two lines of a terminal. Arbitrary:
// sched and lite over iwarp stay below it, models of a NIC and gRPC's stacks do not.
const longName = 60

// numbered are the stacks as a table calls them: by name, or where one is long all by a
// number, with the legend that goes above it.
func numbered(stacks []string) (names map[string]string, legend []string) {
	names = map[string]string{}
	long := slices.ContainsFunc(stacks, func(s string) bool { return len(s) > longName })
	for i, s := range stacks {
		names[s] = view.Printable(s)
		if long {
			legend = append(legend, view.Integer(int64(i+1))+": "+names[s])
			names[s] = view.Integer(int64(i + 1))
		}
	}
	return names, legend
}
