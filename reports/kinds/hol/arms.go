package hol

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// The arms of a head-of-line measurement stand beside each other over all stacks:
// what bulk costs a probe that waits behind it (raw), that has a QP of its own, whose
// application cuts the bulk itself, and whose stack schedules.

// armRow is one stack in one arm at one place; its runs are repeats.
type armRow struct {
	stack, arm string
	runs       []*reports.Result
}

// armPlace is what two rows must share to be compared.
type armPlace struct {
	reports.Load
	bulk int64
}

type armTable struct {
	armPlace
	rows []*armRow
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
		at := armPlace{reports.LoadOf(r), h.BulkSizeBytes}
		t := index[at]
		if t == nil {
			t = &armTable{armPlace: at}
			index[at] = t
			tables = append(tables, t)
		}
		arm := h.arm()
		k := slices.IndexFunc(t.rows, func(row *armRow) bool { return row.stack == r.Stack && row.arm == arm })
		if k < 0 {
			k = len(t.rows)
			t.rows = append(t.rows, &armRow{stack: r.Stack, arm: arm})
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
// what the row's stack stands on, as far down as the table goes.
func (t *armTable) raw(of *armRow) *armRow {
	layers := topLayers(of.stack)
	for i := len(layers) - 1; i >= 0; i-- {
		below := strings.Join(layers[i:], "+")
		k := slices.IndexFunc(t.rows, func(r *armRow) bool { return r.arm == ArmSameQP && r.stack == below })
		if k >= 0 {
			return t.rows[k]
		}
	}
	return nil
}

// median of one figure over the repeats.
func (r *armRow) median(figure func(h *HOL) float64) float64 {
	values := make([]float64, len(r.runs))
	for i, run := range r.runs {
		values[i] = figure(Of(run))
	}
	return reports.Median(values)
}

// lower tells how many times a row's figure is below that of its raw row.
func (t *armTable) lower(r *armRow, figure func(h *HOL) float64) string {
	raw := t.raw(r)
	if raw == nil {
		return "-"
	}
	return view.Ratio(raw.median(figure), r.median(figure))
}

var (
	aloneP50   = func(h *HOL) float64 { return h.ProbeAlone.P50 }
	aloneP99   = func(h *HOL) float64 { return h.ProbeAlone.P99 }
	loadedP50  = func(h *HOL) float64 { return h.ProbeLoaded.P50 }
	loadedP99  = func(h *HOL) float64 { return h.ProbeLoaded.P99 }
	bulkAlone  = func(h *HOL) float64 { return h.BulkAloneBytesPerSecond }
	bulkLoaded = func(h *HOL) float64 { return h.BulkLoadedBytesPerSecond }
)

// armsBySide prints one table for each place that was measured in several arms or
// over several stacks.
func armsBySide(results []reports.Result, u view.Units) (out []reports.SideBlock) {
	for _, s := range armTables(results) {
		var stacks []string
		for _, r := range s.rows {
			if !slices.Contains(stacks, r.stack) {
				stacks = append(stacks, r.stack)
			}
		}
		t := &view.Table{Columns: []view.Column{{Name: "stack", Left: true}, {Name: "arm", Left: true}, {Name: "alone p50", Unit: "usec"}, {Name: "p99", Unit: "usec"},
			{Name: "loaded p50", Unit: "usec"}, {Name: "p99", Unit: "usec"}, {Name: "p50 gain"}, {Name: "p99 gain"},
			{Name: "bulk alone", Unit: u.Name()}, {Name: "loaded", Unit: u.Name()}}}
		few := func(r *armRow, of func(h *HOL) *reports.Latency) bool {
			return slices.ContainsFunc(r.runs, func(run *reports.Result) bool { return reports.PercentileCell(of(Of(run)), "p99").Mark })
		}
		repeated := false
		for _, r := range s.rows {
			repeated = repeated || len(r.runs) > 1
			t.Add(view.Cell{Text: view.Integer(int64(slices.Index(stacks, r.stack) + 1))}, view.Cell{Text: view.Printable(r.arm)},
				view.Cell{Text: view.Usec(r.median(aloneP50))}, view.Cell{Text: view.Usec(r.median(aloneP99)), Mark: few(r, func(h *HOL) *reports.Latency { return &h.ProbeAlone })},
				view.Cell{Text: view.Usec(r.median(loadedP50))}, view.Cell{Text: view.Usec(r.median(loadedP99)), Mark: few(r, func(h *HOL) *reports.Latency { return &h.ProbeLoaded })},
				view.Cell{Text: s.lower(r, loadedP50)}, view.Cell{Text: s.lower(r, loadedP99)},
				view.Cell{Text: u.Bandwidth(r.median(bulkAlone))}, view.Cell{Text: u.Bandwidth(r.median(bulkLoaded))})
		}
		b := reports.SideBlock{Title: "arms side by side: " + s.What() + ", bulk of " + view.Plural(s.bulk, "byte"), Table: t,
			Conditions: reports.BesideConditions(s.Load, 0, repeated) + "; gain: how many times lower than raw, which is " + ArmSameQP + " on the stack without its tiers"}
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
