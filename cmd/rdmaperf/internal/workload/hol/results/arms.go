package results

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// The arms of a head-of-line measurement are next to each other over all stacks:
// what bulk costs a probe that waits behind it (raw), that has a QP of its own, whose
// application cuts the bulk itself, and whose stack schedules.

// armRow is one stack in one arm at one place; its runs are repeats.
type armRow struct {
	stack, arm, op string
	runs           []*reports.Result
}

// armPlace is what two rows must share to be compared. What carries the bulk is not among
// it: a stack without sessions makes calls where others write.
type armPlace struct {
	share
	depth int
	bulk  int64
	run   string // of a scenario
}

type armTable struct {
	armPlace
	load reports.Load // of the first row
	rows []*armRow
}

// ops are the operations of the rows.
func (t *armTable) ops() (ops []string) {
	for _, r := range t.rows {
		if !slices.Contains(ops, r.op) {
			ops = append(ops, r.op)
		}
	}
	return ops
}

// armTables are the places that were measured in several ways.
func armTables(results []reports.Result) []*armTable {
	var tables []*armTable
	index := map[armPlace]*armTable{}
	for i := range results {
		r := &results[i]
		h := Of(r)
		if h == nil {
			continue
		}
		load := reports.LoadOf(r)
		at := armPlace{share: shareOf(r), depth: load.Depth, bulk: h.BulkSizeBytes}
		at.run, _ = r.Parameters["run"].(string)
		t := index[at]
		if t == nil {
			t = &armTable{armPlace: at, load: load}
			index[at] = t
			tables = append(tables, t)
		}
		arm := h.arm()
		k := slices.IndexFunc(t.rows,
			func(row *armRow) bool { return row.stack == r.Stack && row.arm == arm && row.op == r.Op })
		if k < 0 {
			k = len(t.rows)
			t.rows = append(t.rows, &armRow{stack: r.Stack, arm: arm, op: r.Op})
		}
		t.rows[k].runs = append(t.rows[k].runs, r)
	}
	for _, t := range tables {
		var stacks []string
		for _, r := range t.rows {
			stacks = append(stacks, r.stack)
		}
		slices.SortStableFunc(t.rows, func(a, b *armRow) int {
			return cmp.Compare(slices.Index(stacks, a.stack), slices.Index(stacks, b.stack))
		})
	}
	return slices.DeleteFunc(tables, func(t *armTable) bool { return len(t.rows) < 2 })
}

// raw is the row that another is held against: probes behind bulk on the one QP of
// the stack without its tiers, which does the same operation. nil where that was not
// measured.
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

// bareStacks are what a stack is without its tiers, the least first. Messages are carried
// by any device below: iwarp is what lite and sched over it stand on. Calls are not; there,
// the bare stack is the same carrier without a scheduler.
func bareStacks(stack, op string) (bare []string) {
	layers := topLayers(stack)
	if op == "call" {
		return []string{strings.Join(slices.DeleteFunc(layers,
			func(l string) bool { return strings.HasPrefix(l, "sched") }), "+")}
	}
	for i := len(layers) - 1; i > 0; i-- {
		bare = append(bare, strings.Join(layers[i:], "+"))
	}
	if len(layers) == 1 {
		bare = layers
	}
	return bare
}

// saturated tells that the probes under load were more than the path sustains: their
// latency is then the prober's own backlog, and no gain rests on it.
func (r *armRow) saturated() bool {
	return slices.ContainsFunc(r.runs, func(run *reports.Result) bool { return Of(run).saturated() })
}

// median of one figure over the repeats, no number where they do not have it.
func (r *armRow) median(name string) float64 {
	if v, ok := reports.MedianFigure(r.runs, name); ok {
		return v
	}
	return math.NaN()
}

// lower tells how many times a row's figure is below that of its raw row.
func (t *armTable) lower(r *armRow, name string) string {
	raw := t.raw(r)
	if raw == nil || raw.saturated() || r.saturated() {
		return "-"
	}
	return view.Ratio(raw.median(name), r.median(name))
}

// cost is the median of a CPU figure over the repeats in a unit, "-" where it is not known.
func (r *armRow) cost(of func(*reports.Result) float64, unit float64, digits int) string {
	values := make([]float64, len(r.runs))
	for i, run := range r.runs {
		values[i] = of(run)
	}
	if v := reports.Median(values); v > 0 {
		return view.Number(v/unit, digits)
	}
	return "-"
}

// Tables are one table for each place that was measured in several arms or
// over several stacks.
func Tables(results []reports.Result, u view.Units) (out []reports.SideBlock) {
	for _, s := range armTables(results) {
		var stacks []string
		for _, r := range s.rows {
			if !slices.Contains(stacks, r.stack) {
				stacks = append(stacks, r.stack)
			}
		}
		t := &view.Table{Columns: []view.Column{{Name: "stack", Left: true}, {Name: "arm", Left: true},
			{Name: "alone p50", Unit: "us"}, {Name: "p99", Unit: "us", Spare: 4},
			{Name: "loaded p50", Unit: "us"}, {Name: "p99", Unit: "us"}, {Name: "p50 gain"},
			{Name: "p99 gain", Spare: 2},
			{Name: "bulk alone", Unit: u.Name(), Spare: 5}, {Name: "loaded", Unit: u.Name()},
			{Name: "CPU/GB", Unit: "s", Spare: 1}, {Name: "CPU/op", Unit: "us", Spare: 3}}}
		ops := s.ops()
		if len(ops) > 1 {
			t.Columns = slices.Insert(t.Columns, 2, view.Column{Name: "bulk by", Left: true})
		}
		repeated := false
		for _, r := range s.rows {
			repeated = repeated || len(r.runs) > 1
			arm := view.Printable(r.arm)
			if r.saturated() {
				arm += ", saturated"
			}
			cells := []view.Cell{{Text: view.Integer(int64(slices.Index(stacks, r.stack) + 1))}, {Text: arm},
				{Text: view.Usec(r.median("alone.p50"))}, {Text: view.Usec(r.median("alone.p99"))},
				{Text: view.Usec(r.median("loaded.p50"))}, {Text: view.Usec(r.median("loaded.p99"))},
				{Text: s.lower(r, "loaded.p50")}, {Text: s.lower(r, "loaded.p99")},
				{Text: u.Bandwidth(r.median("alone.bw"))}, {Text: u.Bandwidth(r.median("loaded.bw"))},
				{Text: r.cost(cpuPerGB, 1, 3)}, {Text: r.cost(cpuPerOp, 1e-6, 1)}}
			if len(ops) > 1 {
				cells = slices.Insert(cells, 2, view.Cell{Text: view.Printable(r.op)})
			}
			t.Add(cells...)
		}
		load := s.load
		if len(ops) > 1 {
			load.Op, load.Polling = "", ""
		}
		b := reports.SideBlock{Title: "variants: " + load.What() + ", bulk of " + reports.SizeLabel(s.bulk),
			Table: t,
			Conditions: reports.BesideConditions(load, 0, repeated) +
				"; gain: the percentile of " + SameQP + " on the stack without tiers, divided by this one; - where that was " +
				"not measured or one of both is saturated; CPU: both sides, under load, for each bulk message or probe"}
		for i, stack := range stacks {
			b.Lines = append(b.Lines, view.Integer(int64(i+1))+": "+stack)
		}
		out = append(out, b)
	}
	return out
}

// topLayers splits a stack's name at its plus signs outside parentheses.
func topLayers(stack string) []string {
	var layers []string
	depth, start := 0, 0
	for i, c := range stack {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '+' && depth == 0:
			layers = append(layers, stack[start:i])
			start = i + 1
		}
	}
	return append(layers, stack[start:])
}
