package reports

import (
	"math"
	"slices"
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
	load
	latency bool
	rate    float64  // of an open loop
	stacks  []string // by first appearance; the first is the base of all ratios
	sizes   []int64  // by first appearance
	points  map[sidePoint]*sideSamples
}

// sideBySide prints one short table for each load that several stacks ran at the
// same size, and nothing when there is none.
func (p *textPrinter) sideBySide(results []Result) {
	for _, s := range sideTables(results) {
		p.sideTable(s)
	}
}

func sideTables(results []Result) []*sideTable {
	type key struct {
		load
		latency bool
		rate    float64
	}
	var tables []*sideTable
	index := map[key]*sideTable{}
	for i := range results {
		r := &results[i]
		if r.RPC != nil || r.Latency == nil && r.Throughput == nil {
			continue // calls have a table of their own
		}
		k := key{loadOf(r), r.Latency != nil, r.Rate}
		s := index[k]
		if s == nil {
			s = &sideTable{load: k.load, latency: k.latency, rate: k.rate, points: map[sidePoint]*sideSamples{}}
			index[k] = s
			tables = append(tables, s)
		}
		s.add(r)
	}
	return tables
}

func (s *sideTable) add(r *Result) {
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
		pt.few = pt.few || percentileCell(r.Latency, "p99").mark
	} else {
		pt.a, pt.b = append(pt.a, r.Throughput.BytesPerSecond), append(pt.b, r.Throughput.OperationsPerSecond)
	}
}

func (p *textPrinter) sideTable(s *sideTable) {
	t := table{columns: []column{{name: "#bytes"}, {name: "stack", left: true},
		{name: "p50", unit: "usec"}, {name: "p99", unit: "usec"}, {name: "p50 ratio"}, {name: "p99 ratio"}}}
	if !s.latency {
		t.columns = slices.Concat(t.columns[:2], throughputColumns(p.Gbits)[2:], []column{{name: "BW ratio"}, {name: "rate ratio"}})
	}
	repeated := false
	for _, size := range s.sizes {
		base := s.points[sidePoint{size, s.stacks[0]}]
		var rows []row
		for _, stack := range s.stacks {
			pt := s.points[sidePoint{size, stack}]
			if pt == nil {
				continue
			}
			repeated = repeated || len(pt.a) > 1
			a, b := median(pt.a), median(pt.b)
			ratioA, ratioB := "-", "-"
			if base != nil {
				ratioA, ratioB = ratio(a, median(base.a)), ratio(b, median(base.b))
			}
			cells := []cell{{text: integer(size)}, {text: printable(stack)}, {text: usec(a)}, {text: usec(b), mark: pt.few}, {text: ratioA}, {text: ratioB}}
			if !s.latency {
				cells[2].text, cells[3].text = bandwidth(a, p.Gbits), number(b/1e6, 6)
			}
			rows = append(rows, row{cells: cells})
		}
		if len(rows) > 1 { // a stack alone is not side by side
			t.rows = append(t.rows, rows...)
		}
	}
	if len(t.rows) == 0 {
		return
	}
	p.line("")
	p.styled(bold, "side by side: "+s.what()+", ratio to "+s.stacks[0])
	conditions := s.conditions()
	if s.rate > 0 {
		conditions += ", " + rateText(s.rate) + " offered a second"
	}
	if repeated {
		conditions += ", median of repeats"
	}
	p.wrapped(conditions)
	p.table(&t)
}

func ratio(v, base float64) string {
	if base == 0 {
		return "-"
	}
	if s := number(v/base, 2); s != "-" {
		return s + "x"
	}
	return "-"
}

// median of at least one value; of an even number, the mean of the middle two.
func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	if len(v) == 0 {
		return math.NaN()
	}
	return v[(len(v)-1)/2]/2 + v[len(v)/2]/2 // halves first: two large values must not overflow
}
