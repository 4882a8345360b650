package text

import (
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// sideBySide prints stacks that ran the same load, then the tables of workloads. It tells whether there was one.
func (p *printer) sideBySide(results []reports.Result) bool {
	u := view.Units{Gbits: p.Gbits}
	tables := sideTables(results)
	var blocks []reports.SideBlock
	for _, s := range tables {
		if b := s.block(u); len(b.Table.Rows) > 0 && !p.hasOwn(s, u) {
			blocks = append(blocks, b)
		}
	}
	blocks = append(blocks, mixedBlocks(tables, u)...)
	for _, own := range p.Own {
		blocks = append(blocks, own(results, u)...)
	}
	for _, b := range blocks {
		p.heading(b.Title)
		p.wrapped(b.Conditions)
		for _, l := range b.Lines {
			p.wrapped(l)
		}
		p.table(b.Table)
	}
	return len(blocks) > 0
}

func (p *printer) hasOwn(s *sideTable, u view.Units) bool {
	results := view.Each(s.results, func(r *reports.Result) reports.Result { return *r })
	return slices.ContainsFunc(p.Own, func(own OwnTables) bool { return len(own(results, u)) > 0 })
}

// sideTable holds the results that share a load and figures, which is what makes a ratio mean something.
type sideTable struct {
	reports.Load
	rate    float64          // of an open loop
	figures []reports.Figure // without values
	results []*reports.Result

	// by first appearance; the first stack is the base of all ratios
	stacks, points []string
	sizes          []int64
}

const most = 4

// sideFigures are the first that are better or worse, with the tail of the first one.
func sideFigures(r *reports.Result) []reports.Figure {
	var all []reports.Figure
	for _, f := range r.ShownFigures() {
		_, last := reports.SplitFigure(f.Name)
		tail := len(all) == 1 && last == "p99" && all[0].Name == strings.TrimSuffix(f.Name, "p99")+"p50"
		common := !reports.HasFigure(r.OwnFigures(), f.Name)
		switch {
		case f.Better == reports.Neither, last == "mean", last == "p99" && !tail, len(all) == most,
			common && r.Shown == nil && r.Latency != nil && len(all) > 0 && !tail:
			continue
		}
		f.Value = 0
		all = append(all, f)
	}
	return all
}

func sideTables(results []reports.Result) (tables []*sideTable) {
	type key struct {
		reports.Load
		rate float64
		reports.Figure
	}
	for _, g := range reports.GroupBy(reports.Pointers(results), func(r *reports.Result) (key, bool) {
		figures := sideFigures(r)
		if len(figures) == 0 || r.Operations == 0 {
			return key{}, false
		}
		return key{reports.LoadOf(r), r.Rate, figures[0]}, true
	}) {
		s := &sideTable{Load: g.Key.Load, rate: g.Key.rate, results: g.Samples, stacks: view.Unique(g.Samples, stackOf),
			points: view.Unique(g.Samples, pointOf), sizes: view.Unique(g.Samples, sizeOf)}
		for _, r := range g.Samples {
			for _, f := range sideFigures(r) {
				if len(s.figures) < most && !slices.Contains(s.figures, f) {
					s.figures = append(s.figures, f)
				}
			}
		}
		tables = append(tables, s)
	}
	return tables
}

func stackOf(r *reports.Result) string { return r.Stack }
func pointOf(r *reports.Result) string { return reports.DimsText(r.Dims, ",") }
func sizeOf(r *reports.Result) int64   { return r.SizeBytes }

func (s *sideTable) at(size int64, point, stack string) []*reports.Result {
	return view.Only(s.results, func(r *reports.Result) bool {
		return r.SizeBytes == size && r.Stack == stack && pointOf(r) == point
	})
}

func (s *sideTable) block(u view.Units) reports.SideBlock {
	differing, fixed := reports.Differing(s.results)
	t := &view.Table{Columns: slices.Concat([]view.Column{{Name: "#bytes"}}, reports.DimColumns(differing),
		[]view.Column{{Name: "stack", Left: true}})}
	for i, f := range s.figures {
		c := sideColumn(f, u)
		c.Spare = spare(i)
		t.Columns = append(t.Columns, c)
	}
	for i, f := range s.figures {
		c := view.Column{Name: f.Name + " ratio", Spare: spare(i)}
		switch {
		case f.Name == "bw":
			c.Name = "BW ratio"
		case strings.ContainsAny(f.Name, "._"):
			c.Name, c.Unit = reports.FigureLabel(f.Name), "ratio"
		}
		t.Columns = append(t.Columns, c)
	}
	names, legend := numbered(s.stacks)
	repeated := false
	for _, size := range s.sizes {
		for _, point := range s.points {
			base := s.at(size, point, s.stacks[0])
			var rows []view.Row
			measured := false
			for _, stack := range s.stacks {
				runs := s.at(size, point, stack)
				if len(runs) == 0 {
					continue
				}
				repeated = repeated || len(runs) > 1
				cells := slices.Concat(view.Cells(view.Integer(size)), runs[0].DimCells(differing),
					view.Cells(names[stack]))
				var texts, ratios []string
				for _, f := range s.figures {
					text, ratio := "-", "-"
					v, ok := reports.MedianFigure(runs, f.Name)
					if ok {
						text = sideText(f, v, u)
						measured = true
					}
					if b, known := reports.MedianFigure(base, f.Name); known && ok {
						ratio = view.Ratio(v, b)
					}
					texts, ratios = append(texts, text), append(ratios, ratio)
				}
				rows = append(rows, view.Row{Cells: append(cells, view.Cells(append(texts, ratios...)...)...)})
			}
			if len(rows) > 1 && measured { // a stack alone is not side by side
				t.Rows = append(t.Rows, rows...)
			}
		}
	}
	least := len(t.Columns) - 2*len(s.figures)
	for c := len(t.Columns) - 1; c >= least && len(t.Rows) > 0; c-- {
		if slices.ContainsFunc(t.Rows, func(r view.Row) bool { return r.Cells[c].Text != "-" }) {
			continue
		}
		t.Columns = slices.Delete(t.Columns, c, c+1)
		for i := range t.Rows {
			t.Rows[i].Cells = slices.Delete(t.Rows[i].Cells, c, c+1)
		}
	}
	return reports.SideBlock{Title: "side by side: " + s.What() + ", ratio to " + s.stacks[0],
		Conditions: view.Join(", ", reports.BesideConditions(s.Load, s.rate, repeated), fixed), Lines: legend, Table: t}
}

func spare(i int) int {
	if i < 2 {
		return 0
	}
	return i
}

// sideColumn has rates in thousands, as those of a throughput.
func sideColumn(f reports.Figure, u view.Units) view.Column {
	switch f.Name {
	case "bw":
		return view.Column{Name: "bandwidth", Unit: u.Name()}
	case "rate":
		return rateColumn
	}
	return column(f, u)
}

func sideText(f reports.Figure, v float64, u view.Units) string {
	if f.Name == "rate" {
		return view.Number(v/1e3, 3)
	}
	f.Value = v
	return figureText(f, u)
}

// longName is of a stack whose rows would each take two lines of a terminal. Arbitrary.
const longName = 60

// numbered are the stacks as a table calls them: by name, or where one is long all by a number, with a legend.
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

// mixedBlocks put all stacks of a workload into one table, without ratios, where no operation was measured on all.
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

type mixedTable struct {
	workload string
	figures  []reports.Figure
	rate     float64
	of       []*sideTable
}

func (m *mixedTable) needed() bool {
	n := len(view.Unique(m.results(), stackOf))
	return n > 1 && len(m.of) > 1 && !slices.ContainsFunc(m.of, func(s *sideTable) bool { return len(s.stacks) == n })
}

func (m *mixedTable) results() []*reports.Result {
	return slices.Concat(view.Each(m.of, func(s *sideTable) []*reports.Result { return s.results })...)
}

func (m *mixedTable) block(u view.Units) reports.SideBlock {
	results := m.results()
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
	stacks, repeated := view.Unique(results, stackOf), false
	for _, size := range reports.Distinct(results, sizeOf) {
		for i, stack := range stacks {
			for _, s := range m.of {
				for _, point := range view.Unique(results, pointOf) {
					runs := s.at(size, point, stack)
					if len(runs) == 0 {
						continue
					}
					repeated = repeated || len(runs) > 1
					way := s.RoundTrip
					if !how.Left {
						way = view.Integer(int64(s.Depth))
					}
					texts := []string{view.Integer(int64(i + 1)), view.Printable(s.Op), way}
					for _, f := range m.figures {
						text := "-"
						if v, ok := reports.MedianFigure(runs, f.Name); ok {
							text = sideText(f, v, u)
						}
						texts = append(texts, text)
					}
					t.Add(slices.Concat(view.Cells(view.Integer(size)), runs[0].DimCells(differing),
						view.Cells(texts...))...)
				}
			}
		}
	}
	b := reports.SideBlock{Title: "all stacks: " + m.workload, Table: t, Conditions: view.Join(", ",
		"each stack by the operations that it has, which are not the same, so without ratios",
		view.When(m.rate > 0, view.RateText(m.rate)+" offered a second"), view.When(repeated, "median of repeats"))}
	for i, stack := range stacks {
		b.Lines = append(b.Lines, view.Integer(int64(i+1))+": "+view.Printable(stack))
	}
	return b
}
