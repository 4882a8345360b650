package text

import (
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// mixedBlocks put all stacks of a workload into one table where no operation was measured on
// all of them: a stack without sessions makes calls where others send, write and read. What
// differs is in each row, so there are no ratios.
func mixedBlocks(all []*sideTable, u view.Units) (out []reports.SideBlock) {
	var tables []*mixedTable
	for _, s := range all {
		i := slices.IndexFunc(tables, func(m *mixedTable) bool {
			return m.workload == s.Workload && slices.Equal(m.figures, s.figures) && m.rate == s.rate
		})
		if i < 0 {
			i = len(tables)
			tables = append(tables, &mixedTable{workload: s.Workload, figures: s.figures, rate: s.rate})
		}
		tables[i].of = append(tables[i].of, s)
	}
	for _, m := range tables {
		if m.needed() {
			out = append(out, m.block(u))
		}
	}
	return out
}

// mixedTable is all operations of one workload.
type mixedTable struct {
	workload string
	figures  []reports.Figure
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
	var results []*reports.Result
	var sizes []int64
	var points []string
	for _, s := range m.of {
		results, sizes = append(results, s.results...), append(sizes, s.sizes...)
		for _, r := range s.results {
			if d := reports.DimsText(r.Dims, ","); !slices.Contains(points, d) {
				points = append(points, d)
			}
		}
	}
	slices.Sort(sizes)
	differing, _ := reports.Differing(results)
	how := view.Column{Name: "depth"} // of a latency it is one
	if m.of[0].RoundTrip != "" {
		how = view.Column{Name: "round trip", Left: true}
	}
	t := &view.Table{Columns: slices.Concat([]view.Column{{Name: "#bytes"}}, reports.DimColumns(differing),
		[]view.Column{{Name: "stack", Left: true}, {Name: "op", Left: true}, how})}
	for _, f := range m.figures {
		t.Columns = append(t.Columns, sideColumn(f, u))
	}
	stacks, repeated := m.stacks(), false
	for _, size := range slices.Compact(sizes) {
		for i, stack := range stacks {
			for _, s := range m.of {
				for _, dims := range points {
					runs := s.at(size, dims, stack)
					if len(runs) == 0 {
						continue
					}
					repeated = repeated || len(runs) > 1
					way := view.Cell{Text: s.RoundTrip}
					if !how.Left {
						way.Text = view.Integer(int64(s.Depth))
					}
					cells := slices.Concat([]view.Cell{{Text: view.Integer(size)}}, runs[0].DimCells(differing),
						[]view.Cell{{Text: view.Integer(int64(i + 1))}, {Text: view.Printable(s.Op)}, way})
					for _, f := range m.figures {
						text := "-"
						if v, ok := reports.MedianFigure(runs, f.Name); ok {
							text = sideText(f, v, u)
						}
						cells = append(cells, view.Cell{Text: text})
					}
					t.Add(cells...)
				}
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
