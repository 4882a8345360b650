package answer

import (
	"cmp"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// mostColumns is how many figures are shown beside the name of a stack, without what pays for them.
const mostColumns = 6

// choose keeps the columns that are shown: all of a few points, else the ends of each sweep, else of each workload one.
func (m *matrix) choose() {
	all, points := m.columns, 0
	for _, c := range all {
		if !c.pays {
			points++
		}
	}
	if points <= mostColumns {
		return
	}
	if m.columns = ends(all); len(m.columns) > mostColumns {
		m.columns = each(all)
	}
}

func ends(all []*column) []*column {
	type sweep struct {
		workload, op, figure, dims, run string
	}
	keep := map[*column]bool{}
	for _, g := range reports.GroupBy(all, func(c *column) (sweep, bool) {
		s := sweep{c.workload, c.op, c.Name, c.dims, c.run}
		if c.Name == "rate" {
			s.figure = "bw" // of the same sweep
		}
		return s, true
	}) {
		keep[slices.MinFunc(g.Samples, bySweep)], keep[slices.MaxFunc(g.Samples, bySweep)] = true, true
	}
	return kept(all, keep)
}

func bySweep(a, b *column) int {
	return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.qps, b.qps), cmp.Compare(a.rate, b.rate))
}

func kept(all []*column, keep map[*column]bool) []*column {
	return view.Only(all, func(c *column) bool { return keep[c] })
}

// each is one column of each workload, and one of its calls. Where these are too many, calls of streams go first.
func each(all []*column) []*column {
	type kind struct {
		workload string
		call     bool
	}
	var best []*column
	for _, g := range reports.GroupBy(all, func(c *column) (kind, bool) { return kind{c.workload, c.isCall()}, !c.pays }) {
		first := g.Samples[0]
		for _, c := range g.Samples[1:] {
			if preferred(c, first) {
				first = c
			}
		}
		best = append(best, first)
	}
	slices.SortStableFunc(best, func(a, b *column) int { return cmp.Compare(weight(a), weight(b)) })
	keep := map[*column]bool{}
	for _, c := range best[:min(len(best), mostColumns)] {
		if keep[c] = true; c.price != nil {
			keep[c.price] = true
		}
	}
	return kept(all, keep)
}

func preferred(c, than *column) bool {
	if c.op != than.op {
		return c.op == "send"
	}
	if c.Quantity == reports.QuantityBytes || than.Quantity == reports.QuantityBytes {
		return c.size > than.size
	}
	return c.size < than.size
}

// weight orders kinds by who reads them: latencies of messages and calls, streams and probes, then the rest.
func weight(c *column) int {
	switch {
	case c.topic() == reports.TopicSmall && c.Quantity == reports.QuantityTime:
		return 0
	case !c.isCall():
		return 1
	}
	return 2
}
