package answer

import (
	"cmp"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
)

const (
	// mostPoints is how many points are all shown.
	mostPoints = 4
	// mostColumns is how many figures are shown beside the name of a stack, without what pays for them.
	mostColumns = 6
)

// choose keeps the columns that are shown: all of a few points, else the ends of each sweep, else of each workload one.
func (m *matrix) choose() {
	all, points := m.columns, 0
	for _, c := range all {
		if !c.pays {
			points++
		}
	}
	if points <= mostPoints || points <= mostColumns {
		return
	}
	if m.columns = ends(all); len(m.columns) > mostColumns {
		m.columns = each(all)
	}
}

// ends are the first and the last point of each sweep of sizes, rates or queue pairs.
func ends(all []*column) []*column {
	type sweep struct {
		workload, op, figure, dims, run string
	}
	index := map[sweep][]*column{}
	for _, c := range all {
		s := sweep{c.workload, c.op, c.Name, c.dims, c.run}
		if c.Name == "rate" {
			s.figure = "bw" // of the same sweep
		}
		index[s] = append(index[s], c)
	}
	keep := map[*column]bool{}
	for _, of := range index {
		keep[slices.MinFunc(of, bySweep)], keep[slices.MaxFunc(of, bySweep)] = true, true
	}
	return kept(all, keep)
}

func bySweep(a, b *column) int {
	return cmp.Or(cmp.Compare(a.size, b.size), cmp.Compare(a.qps, b.qps), cmp.Compare(a.rate, b.rate))
}

func kept(all []*column, keep map[*column]bool) (out []*column) {
	for _, c := range all {
		if keep[c] {
			out = append(out, c)
		}
	}
	return out
}

// each is one column of each workload, by itself and as calls: the smallest size of a time or a rate of messages, the
// largest of a bandwidth, of sends where there are any. Where these are too many, calls of streams go first.
func each(all []*column) []*column {
	type kind struct {
		workload string
		call     bool
	}
	best := map[kind]*column{}
	var order []kind
	for _, c := range all {
		k := kind{c.workload, c.isCall()}
		if b := best[k]; c.pays {
			continue
		} else if b == nil {
			order = append(order, k)
			best[k] = c
		} else if preferred(c, b) {
			best[k] = c
		}
	}
	slices.SortStableFunc(order, func(a, b kind) int { return cmp.Compare(weight(best[a]), weight(best[b])) })
	keep, n := map[*column]bool{}, 0
	for _, k := range order {
		c := best[k]
		if n++; n > mostColumns {
			break
		}
		if keep[c] = true; c.price != nil {
			keep[c.price] = true
		}
	}
	return kept(all, keep)
}

// preferred tells whether a column is shown rather than another of its kind.
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
