package hol

import (
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// armRow is one stack in one arm at one place; its runs are repeats.
type armRow struct {
	stack, arm, op string
	runs           []*reports.Measured
}

// armTable is a place whose rows are compared. A stack without sessions makes calls where others write.
type armTable struct {
	place
	load   reports.Load // of the first row
	mixed  bool         // bulk is carried in several ways
	stacks []string
	rows   []*armRow
}

func armTables(results []reports.Result) (tables []*armTable) {
	var all []*reports.Measured
	for i := range results {
		if Of(&results[i]) != nil {
			all = append(all, &reports.Measured{Result: &results[i]})
		}
	}
	for _, g := range reports.GroupBy(all, func(s *reports.Measured) (place, bool) {
		at := placeOf(s.Result)
		at.run, _ = s.Parameters["run"].(string)
		return at, true
	}) {
		first := g.Samples[0].Result
		t := &armTable{place: g.Key, load: reports.LoadOf(first),
			mixed: slices.ContainsFunc(g.Samples, func(s *reports.Measured) bool { return s.Op != first.Op })}
		for _, stack := range reports.GroupBy(g.Samples, func(s *reports.Measured) (string, bool) { return s.Stack, true }) {
			t.stacks = append(t.stacks, stack.Key)
			for _, row := range reports.GroupBy(stack.Samples, func(s *reports.Measured) ([2]string, bool) {
				return [2]string{Of(s.Result).arm(), s.Op}, true
			}) {
				t.rows = append(t.rows, &armRow{stack.Key, row.Key[0], row.Key[1], row.Samples})
			}
		}
		if len(t.rows) > 1 {
			tables = append(tables, t)
		}
	}
	return tables
}

// raw is the row that another is held against, nil where that was not measured.
func (t *armTable) raw(of *armRow) *armRow {
	for _, stack := range bareStacks(of.stack, of.op) {
		k := slices.IndexFunc(t.rows,
			func(r *armRow) bool { return r.arm == SameQP && r.op == of.op && r.stack == stack })
		if k >= 0 {
			return t.rows[k]
		}
	}
	return nil
}

// bareStacks are what a stack is without its tiers, the least first. Calls keep their carrier, without a scheduler.
func bareStacks(stack, op string) (bare []string) {
	layers := reports.Layers(stack)
	if op == "call" {
		return []string{strings.Join(slices.DeleteFunc(layers,
			func(l string) bool { return strings.HasPrefix(l, "sched") }), "+")}
	}
	for i := len(layers) - 1; i > 0; i-- {
		bare = append(bare, strings.Join(layers[i:], "+"))
	}
	if len(layers) == 1 {
		return layers
	}
	return bare
}

func (r *armRow) median(name string) float64 {
	var runs []*reports.Result
	for _, s := range r.runs {
		runs = append(runs, s.Result)
	}
	if v, ok := reports.MedianFigure(runs, name); ok {
		return v
	}
	return math.NaN()
}

// lower is how many times a figure is below the raw row's. Of a saturated one it would be the prober's backlog.
func (t *armTable) lower(r *armRow, name string) string {
	raw := t.raw(r)
	if raw == nil || saturated(raw.runs) || saturated(r.runs) {
		return "-"
	}
	return view.Ratio(raw.median(name), r.median(name))
}

// Tables are one table for each place that was measured in several arms or over several stacks.
func Tables(results []reports.Result, u view.Units) (out []reports.SideBlock) {
	for _, s := range armTables(results) {
		t := &view.Table{Columns: []view.Column{{Name: "stack", Left: true}, {Name: "arm", Left: true},
			{Name: "alone p50", Unit: "us"}, {Name: "p99", Unit: "us", Spare: 4},
			{Name: "loaded p50", Unit: "us"}, {Name: "p99", Unit: "us"}, {Name: "p50 gain"},
			{Name: "p99 gain", Spare: 2},
			{Name: "bulk alone", Unit: u.Name(), Spare: 5}, {Name: "loaded", Unit: u.Name()},
			{Name: "CPU/GB", Unit: "s", Spare: 1}, {Name: "CPU/op", Unit: "us", Spare: 3}}}
		if s.mixed {
			t.Columns = slices.Insert(t.Columns, 2, view.Column{Name: "bulk by", Left: true})
		}
		repeated := false
		for _, r := range s.rows {
			repeated = repeated || len(r.runs) > 1
			arm := view.Printable(r.arm)
			if saturated(r.runs) {
				arm += ", saturated"
			}
			cells := []view.Cell{{Text: view.Integer(int64(slices.Index(s.stacks, r.stack) + 1))}, {Text: arm},
				{Text: view.Usec(r.median("alone.p50"))}, {Text: view.Usec(r.median("alone.p99"))},
				{Text: view.Usec(r.median("loaded.p50"))}, {Text: view.Usec(r.median("loaded.p99"))},
				{Text: s.lower(r, "loaded.p50")}, {Text: s.lower(r, "loaded.p99")},
				{Text: u.Bandwidth(r.median("alone.bw"))}, {Text: u.Bandwidth(r.median("loaded.bw"))},
				{Text: view.Number(r.median("cpu.gb")/1e9, 3)}, {Text: view.Number(r.median("cpu.op")/1e3, 1)}}
			if s.mixed {
				cells = slices.Insert(cells, 2, view.Cell{Text: view.Printable(r.op)})
			}
			t.Add(cells...)
		}
		load := s.load
		if s.mixed {
			load.Op, load.Polling = "", ""
		}
		b := reports.SideBlock{Title: "variants: " + load.What() + ", bulk of " + reports.SizeLabel(s.bulk),
			Table: t,
			Conditions: reports.BesideConditions(load, 0, repeated) +
				"; gain: the percentile of " + SameQP + " on the stack without tiers, divided by this one; - where that was " +
				"not measured or one of both is saturated; CPU: both sides, under load, for each bulk message or probe"}
		for i, stack := range s.stacks {
			b.Lines = append(b.Lines, view.Integer(int64(i+1))+": "+stack)
		}
		out = append(out, b)
	}
	return out
}
