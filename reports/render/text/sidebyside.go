package text

import (
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// sideBySide prints side by side stacks that ran the same load, and nothing
// when there is none; then the tables of workloads. It tells whether there was a table.
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
		p.line("")
		p.styled(bold, b.Title)
		p.wrapped(b.Conditions)
		for _, l := range b.Lines {
			p.wrapped(l)
		}
		p.table(b.Table)
	}
	return len(blocks) > 0
}

// hasOwn tells whether a workload's own tables have what a table shows.
func (p *printer) hasOwn(s *sideTable, u view.Units) bool {
	results := make([]reports.Result, len(s.results))
	for i, r := range s.results {
		results[i] = *r
	}
	return slices.ContainsFunc(p.Own, func(own OwnTables) bool { return len(own(results, u)) > 0 })
}

// sideTable holds the results that share a load and figures, which is what makes a ratio mean something.
type sideTable struct {
	reports.Load
	rate    float64          // of an open loop
	figures []reports.Figure // without values
	stacks  []string         // by first appearance; the first is the base of all ratios
	sizes   []int64          // by first appearance
	results []*reports.Result
}

// most figures side by side.
const most = 4

// sideFigures are what a table has room for: the first that are better or worse, with the tail of the first one.
func sideFigures(r *reports.Result) []reports.Figure {
	var all []reports.Figure
	for _, f := range r.ShownFigures() {
		last := f.Name[strings.LastIndexByte(f.Name, '.')+1:]
		tail := len(all) == 1 && last == "p99" && all[0].Name == strings.TrimSuffix(f.Name, "p99")+"p50"
		common := !slices.ContainsFunc(r.OwnFigures(), func(o reports.Figure) bool { return o.Name == f.Name })
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

func sideTables(results []reports.Result) []*sideTable {
	var tables []*sideTable
	for i := range results {
		r := &results[i]
		figures := sideFigures(r)
		if len(figures) == 0 || r.Operations == 0 {
			continue
		}
		load := reports.LoadOf(r)
		at := slices.IndexFunc(tables, func(s *sideTable) bool {
			return s.Load == load && s.rate == r.Rate && s.figures[0] == figures[0]
		})
		if at < 0 {
			at = len(tables)
			tables = append(tables, &sideTable{Load: load, rate: r.Rate, figures: figures})
		}
		s := tables[at]
		s.results = append(s.results, r)
		for _, f := range figures {
			if len(s.figures) < most && !slices.Contains(s.figures, f) {
				s.figures = append(s.figures, f)
			}
		}
		if !slices.Contains(s.stacks, r.Stack) {
			s.stacks = append(s.stacks, r.Stack)
		}
		if !slices.Contains(s.sizes, r.SizeBytes) {
			s.sizes = append(s.sizes, r.SizeBytes)
		}
	}
	return tables
}

// at are the repeats of one stack at one point.
func (s *sideTable) at(size int64, dims, stack string) (runs []*reports.Result) {
	for _, r := range s.results {
		if r.SizeBytes == size && reports.DimsText(r.Dims, ",") == dims && r.Stack == stack {
			runs = append(runs, r)
		}
	}
	return runs
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
	var points []string
	for _, r := range s.results {
		if d := reports.DimsText(r.Dims, ","); !slices.Contains(points, d) {
			points = append(points, d)
		}
	}
	for _, size := range s.sizes {
		for _, dims := range points {
			base := s.at(size, dims, s.stacks[0])
			var rows []view.Row
			measured := false
			for _, stack := range s.stacks {
				runs := s.at(size, dims, stack)
				if len(runs) == 0 {
					continue
				}
				repeated = repeated || len(runs) > 1
				cells := slices.Concat([]view.Cell{{Text: view.Integer(size)}}, runs[0].DimCells(differing),
					[]view.Cell{{Text: names[stack]}})
				var ratios []view.Cell
				for _, f := range s.figures {
					text, ratio := "-", "-"
					v, ok := reports.MedianFigure(runs, f.Name)
					if ok {
						text = sideText(f, v, u)
						measured = true
					}
					cells = append(cells, view.Cell{Text: text})
					if b, known := reports.MedianFigure(base, f.Name); known && ok {
						ratio = view.Ratio(v, b)
					}
					ratios = append(ratios, view.Cell{Text: ratio})
				}
				rows = append(rows, view.Row{Cells: append(cells, ratios...)})
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
	conditions := reports.BesideConditions(s.Load, s.rate, repeated)
	if fixed != "" {
		conditions += ", " + fixed
	}
	return reports.SideBlock{Title: "side by side: " + s.What() + ", ratio to " + s.stacks[0], Conditions: conditions,
		Lines: legend, Table: t}
}

// spare leaves out the last figures first; the first two stay.
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

// longName is of a stack whose rows would each take two lines of a terminal. Arbitrary:
// sched and lite over iwarp stay below it, models of a NIC and gRPC's stacks do not.
const longName = 60

// numbered are the stacks as a table calls them: by name, or where one is long all by a
// number, with the legend that goes above it.
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
