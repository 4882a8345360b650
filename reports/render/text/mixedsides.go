package text

import (
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// mixedSides put all stacks of a workload into one table where no operation was measured on
// all of them: a stack without sessions makes calls where others send, write and read. What
// differs stands in each row, so there are no ratios.
var mixedSides = &reports.SideBySide{Rank: 1, Tables: func(results []reports.Result, u view.Units) (out []reports.SideBlock) {
	var tables []*mixedTable
	for _, s := range sideTables(results) {
		i := slices.IndexFunc(tables, func(m *mixedTable) bool {
			return m.workload == s.Workload && m.latency == s.latency && m.rate == s.rate
		})
		if i < 0 {
			i = len(tables)
			tables = append(tables, &mixedTable{workload: s.Workload, latency: s.latency, rate: s.rate})
		}
		tables[i].of = append(tables[i].of, s)
	}
	for _, m := range tables {
		if m.needed() {
			out = append(out, m.block(u))
		}
	}
	return out
}}

// mixedTable is all operations of one workload.
type mixedTable struct {
	workload string
	latency  bool
	rate     float64
	of       []*sideTable
}

// stacks are all, by first appearance.
func (m *mixedTable) stacks() (all []string) {
	for _, s := range m.of {
		for _, stack := range s.stacks {
			if !slices.Contains(all, stack) {
				all = append(all, stack)
			}
		}
	}
	return all
}

// needed tells that no operation has all stacks.
func (m *mixedTable) needed() bool {
	n := len(m.stacks())
	return n > 1 && len(m.of) > 1 && !slices.ContainsFunc(m.of, func(s *sideTable) bool { return len(s.stacks) == n })
}

func (m *mixedTable) block(u view.Units) reports.SideBlock {
	t := &view.Table{Columns: []view.Column{{Name: "#bytes"}, {Name: "stack", Left: true}, {Name: "op", Left: true}, {Name: "round trip", Left: true}, {Name: "p50", Unit: "us"}, {Name: "p99", Unit: "us"}}}
	if !m.latency {
		t.Columns = slices.Concat(t.Columns[:3], []view.Column{{Name: "depth"}}, throughputColumns(u.Gbits)[2:])
	}
	stacks := m.stacks()
	var sizes []int64
	for _, s := range m.of {
		sizes = append(sizes, s.sizes...)
	}
	slices.Sort(sizes)
	repeated := false
	for _, size := range slices.Compact(sizes) {
		for i, stack := range stacks {
			for _, s := range m.of {
				pt := s.points[sidePoint{size, stack}]
				if pt == nil {
					continue
				}
				repeated = repeated || len(pt.a) > 1
				a, b := reports.Median(pt.a), reports.Median(pt.b)
				cells := []view.Cell{{Text: view.Integer(size)}, {Text: view.Integer(int64(i + 1))}, {Text: view.Printable(s.Op)}}
				if m.latency {
					cells = append(cells, view.Cell{Text: s.RoundTrip}, view.Cell{Text: view.Usec(a)}, view.Cell{Text: view.Usec(b), Mark: pt.few})
				} else {
					cells = append(cells, view.Cell{Text: view.Integer(int64(s.Depth))}, view.Cell{Text: u.Bandwidth(a)}, view.Cell{Text: view.Number(b/1e3, 3)})
				}
				t.Add(cells...)
			}
		}
	}
	conditions := []string{"each stack by the operations that it has, which are not the same, so without ratios"}
	if m.rate > 0 {
		conditions = append(conditions, view.RateText(m.rate)+" offered a second")
	}
	if repeated {
		conditions = append(conditions, "median of repeats")
	}
	b := reports.SideBlock{Title: "all stacks: " + m.workload, Conditions: strings.Join(conditions, ", "), Table: t}
	for i, stack := range stacks {
		b.Lines = append(b.Lines, view.Integer(int64(i+1))+": "+view.Printable(stack))
	}
	return b
}
