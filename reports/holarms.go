package reports

import (
	"cmp"
	"slices"
	"strings"
)

// The arms of a head-of-line measurement stand beside each other over all stacks:
// what bulk costs a probe that waits behind it (raw), that has a QP of its own, whose
// application cuts the bulk itself, and whose stack schedules.

// armRow is one stack in one arm at one place; its runs are repeats.
type armRow struct {
	stack, arm string
	runs       []*Result
}

// armPlace is what two rows must share to be compared.
type armPlace struct {
	load
	bulk int64
}

type armTable struct {
	armPlace
	rows []*armRow
}

// armTables are the places that were measured in several ways.
func armTables(results []Result) []*armTable {
	var tables []*armTable
	index := map[armPlace]*armTable{}
	for i := range results {
		r := &results[i]
		if r.HOL == nil {
			continue
		}
		at := armPlace{loadOf(r), r.HOL.BulkSizeBytes}
		t := index[at]
		if t == nil {
			t = &armTable{armPlace: at}
			index[at] = t
			tables = append(tables, t)
		}
		arm := r.HOL.arm()
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

// arm is that of a document from before there was a choice, too.
func (h *HOL) arm() string {
	if h.Arm == "" {
		return ArmSameQP
	}
	return h.Arm
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

// median of one figure over the repeats.
func (r *armRow) median(figure func(h *HOL) float64) float64 {
	values := make([]float64, len(r.runs))
	for i, run := range r.runs {
		values[i] = figure(run.HOL)
	}
	return median(values)
}

// lower tells how many times a row's figure is below that of its raw row.
func (t *armTable) lower(r *armRow, figure func(h *HOL) float64) string {
	raw := t.raw(r)
	if raw == nil {
		return "-"
	}
	return ratio(raw.median(figure), r.median(figure))
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
func (p *textPrinter) armsBySide(results []Result) {
	for _, s := range armTables(results) {
		var stacks []string
		for _, r := range s.rows {
			if !slices.Contains(stacks, r.stack) {
				stacks = append(stacks, r.stack)
			}
		}
		unit := throughputColumns(p.Gbits)[2].unit
		t := table{columns: []column{{name: "stack", left: true}, {name: "arm", left: true}, {name: "alone p50", unit: "usec"}, {name: "99%", unit: "usec"},
			{name: "loaded p50", unit: "usec"}, {name: "99%", unit: "usec"}, {name: "p50 gain"}, {name: "99% gain"},
			{name: "bulk alone", unit: unit}, {name: "loaded", unit: unit}}}
		few := func(r *armRow, of func(h *HOL) *Latency) bool {
			return slices.ContainsFunc(r.runs, func(run *Result) bool { return percentileCell(of(run.HOL), "p99").mark })
		}
		repeated := false
		for _, r := range s.rows {
			repeated = repeated || len(r.runs) > 1
			t.add(cell{text: integer(int64(slices.Index(stacks, r.stack) + 1))}, cell{text: printable(r.arm)},
				cell{text: usec(r.median(aloneP50))}, cell{text: usec(r.median(aloneP99)), mark: few(r, func(h *HOL) *Latency { return &h.ProbeAlone })},
				cell{text: usec(r.median(loadedP50))}, cell{text: usec(r.median(loadedP99)), mark: few(r, func(h *HOL) *Latency { return &h.ProbeLoaded })},
				cell{text: s.lower(r, loadedP50)}, cell{text: s.lower(r, loadedP99)},
				cell{text: bandwidth(r.median(bulkAlone), p.Gbits)}, cell{text: bandwidth(r.median(bulkLoaded), p.Gbits)})
		}
		p.line("")
		p.styled(bold, "arms side by side: "+s.what()+", bulk of "+plural(s.bulk, "byte"))
		conditions := s.conditions()
		if repeated {
			conditions += ", median of repeats"
		}
		p.wrapped(conditions + "; gain: how many times lower than raw, which is " + ArmSameQP + " on the stack without its tiers")
		for i, stack := range stacks {
			p.wrapped(integer(int64(i+1)) + ": " + stack)
		}
		p.table(&t)
	}
}
