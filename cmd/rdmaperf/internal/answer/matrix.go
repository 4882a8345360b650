package answer

import (
	"maps"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// slice is one figure of one round, with the least and greatest that it can have been on an idle machine.
type slice struct {
	of []measured // mostly one
	Value
	taken float64
}

type measured struct {
	*reports.Result
	reports.Figure
}

type cell map[int]slice

type row struct {
	stack, full, variant string
	cells                map[*column]cell
}

type column struct {
	point
	reports.Figure         // of the first result
	price          *column // what pays for it
	pays           bool    // for another
	shown          reports.AnswerColumn
	words          words
}

type matrix struct {
	rows    []*row
	columns []*column

	ofVariants bool // only variants of one stack are compared
}

// ofPairs is the workload whose results compare pairs of hosts, and not stacks: they have a verdict of their own.
const ofPairs = "mesh"

func gather(d *reports.Document) *matrix {
	m := &matrix{}
	results := reports.Pointers(d.Results)
	ties, several, first := map[string]tied{}, map[string]bool{}, firstRanks(results)
	for _, w := range reports.GroupBy(results, func(r *reports.Result) (string, bool) { return r.Workload, true }) {
		ties[w.Key], several[w.Key] = tiedDims(w.Samples), variants(w.Samples) > 1
	}
	for _, r := range results {
		if r.Workload == ofPairs {
			continue
		}
		f, ok := mainFigure(r, first[[2]string{r.Workload, r.Op}])
		if ok = ok && usable(r, &f); !ok || impossible(r) {
			continue
		}
		variant := ""
		if several[r.Workload] {
			variant = view.Visible(variantOf(r))
		}
		p, line := pointOf(r, ties[r.Workload]), m.row(r, variant)
		c := m.column(p, f)
		line.add(c, r, f)
		if f, ok := priceFigure(r, f); ok && usable(r, &f) {
			c.price = m.column(p, f)
			c.price.pays = true
			line.add(c.price, r, f)
		}
	}
	m.name()
	return m
}

// usable tells whether a figure can be in a ratio. A window without completions gets the rate of one operation.
func usable(r *reports.Result, f *reports.Figure) bool {
	if f.Value == 0 && f.Better == reports.More && r.DurationNs > 0 {
		if f.Value = 1e9 / float64(r.DurationNs); f.Quantity == reports.QuantityBytes {
			f.Value *= float64(r.SizeBytes)
		}
	}
	const most = 1e18 // ns, bytes or operations a second
	return f.Value > 1/most && f.Value < most
}

func (m *matrix) row(r *reports.Result, variant string) *row {
	i := slices.IndexFunc(m.rows, func(l *row) bool { return l.full == r.Stack && l.variant == variant })
	if i < 0 {
		i = len(m.rows)
		m.rows = append(m.rows, &row{stack: view.Visible(reports.TransportOf(r)), full: r.Stack, variant: variant,
			cells: map[*column]cell{}})
	}
	return m.rows[i]
}

func (m *matrix) column(p point, f reports.Figure) *column {
	i := slices.IndexFunc(m.columns, func(c *column) bool { return c.point == p && c.Name == f.Name })
	if i < 0 {
		i = len(m.columns)
		m.columns = append(m.columns, &column{point: p, Figure: f})
	}
	return m.columns[i]
}

func (l *row) add(c *column, r *reports.Result, f reports.Figure) {
	if l.cells[c] == nil {
		l.cells[c] = cell{}
	}
	s := l.cells[c][r.Repeat]
	s.of = append(s.of, measured{r, f})
	l.cells[c][r.Repeat] = s
}

// settle fills in the figures of the chosen columns: of several results in a round, their means.
func (m *matrix) settle() {
	for _, l := range m.rows {
		for _, c := range m.columns {
			for round, s := range l.cells[c] {
				for _, r := range s.of {
					v := ValueOf(r.Result, r.Figure)
					n := float64(len(s.of))
					s.Value = Value{s.Value.Value + v.Value/n, s.Low + v.Low/n, s.High + v.High/n}
					s.taken += taken(r.Result) / n
				}
				l.cells[c][round] = s
			}
		}
	}
}

// name calls stacks what the user called them, where that tells them apart.
func (m *matrix) name() {
	given := map[string]string{}
	for _, l := range m.rows {
		if full, ok := given[l.stack]; ok && full != l.full {
			for _, l := range m.rows {
				l.stack = view.Visible(l.full)
			}
			return
		}
		given[l.stack] = l.full
	}
}

func (c cell) rounds() []int { return slices.Sorted(maps.Keys(c)) }

func (c cell) of(value func(s slice) float64) []float64 {
	return view.Each(c.rounds(), func(round int) float64 { return value(c[round]) })
}

func (c cell) summary(level float64) *reports.AnswerCell {
	if len(c) == 0 {
		return nil
	}
	value := medianOf(c.of(func(s slice) float64 { return s.Value.Value }), level)
	low := medianOf(c.of(func(s slice) float64 { return s.Low }), level)
	high := medianOf(c.of(func(s slice) float64 { return s.High }), level)
	out := &reports.AnswerCell{Value: value.Median, Rounds: len(c),
		Taken: reports.Median(c.of(func(s slice) float64 { return s.taken }))}
	if value.Within != nil {
		out.Within = &[2]float64{low.Within[0], finite(high.Within[1], value.Within[1])}
	}
	return out
}

func finite(v, measured float64) float64 {
	if view.Finite(v) {
		return v
	}
	return measured
}
