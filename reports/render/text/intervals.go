package text

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// intervalTables show the means over the repeats of each point with their
// confidence intervals. Points with too few repeats have none; their note says so.
func (p *printer) intervalTables(g *reports.Grouped) {
	_, sets := reports.RepeatSets(g.Results)
	var tables []*view.Table
	for _, set := range sets {
		if len(set.Results) < reports.IntervalRepeats {
			continue
		}
		// Figure columns depend on what a result has: one table for each kind.
		names, rows := p.intervalRows(set)
		columns := g.PerRow([]view.Column{{Name: "#bytes"}, {Name: "repeats"}})
		if set.Arm != "" && set.Kind.Interval != nil {
			columns = append(columns, view.Column{Name: "arm", Left: true}, view.Column{Name: set.Kind.Interval.Of})
		}
		columns = append(columns, names...)
		i := slices.IndexFunc(tables, func(t *view.Table) bool { return slices.Equal(t.Columns, columns) })
		if i < 0 {
			i = len(tables)
			tables = append(tables, &view.Table{Columns: columns})
		}
		for _, figures := range rows {
			cells := g.PerRowCells(set.Results[0], []view.Cell{{Text: view.Integer(set.Size)}, {Text: view.Integer(int64(len(set.Results)))}})
			tables[i].Add(append(cells, figures...)...)
		}
	}
	for i, t := range tables {
		if i == 0 {
			p.wrapped("over the repeats, with 95 % confidence intervals" + fewer(sets) + " (" + reports.IntervalMethod + "):")
		}
		p.table(t)
	}
}

// intervalRows are the figures of one point: a row, or two for probes alone and
// loaded.
func (p *printer) intervalRows(set *reports.RepeatSet) (names []view.Column, rows [][]view.Cell) {
	all := reports.MeanIntervals(set.Results)
	find := func(name string) view.Cell {
		i := slices.IndexFunc(all, func(m reports.MeanInterval) bool { return m.Figure == name })
		if i < 0 {
			return view.Cell{Text: "-"}
		}
		m := all[i]
		show := func(v float64) string { return view.Number(v/1e3, 3) }
		switch m.Quantity() {
		case reports.QuantityTime:
			show = view.Usec
		case reports.QuantityBytes:
			show = func(v float64) string { return view.Bandwidth(v, p.Gbits) }
		}
		return view.Cell{Text: show(m.Center()) + " (" + show(m.Low) + ".." + show(m.High) + ")"}
	}
	switch own := set.Kind.Interval; {
	case own != nil:
		for _, r := range own.Rows(set.Results[0]) {
			cells := []view.Cell{{Text: view.Printable(r.Arm)}, {Text: r.Of}}
			for _, name := range r.Figures {
				cells = append(cells, find(name))
			}
			rows = append(rows, cells)
		}
		return own.Columns(view.Units{Gbits: p.Gbits}), rows
	case set.Latency:
		return reports.IntervalTimes, [][]view.Cell{{find("p50"), find("mean"), find("p99")}}
	case set.Throughput:
		return throughputColumns(p.Gbits)[2:], [][]view.Cell{{find("bw"), find("rate")}}
	}
	return nil, nil
}

// fewer says what confidence percentiles have where few repeats give less than 95 %.
func fewer(sets []*reports.RepeatSet) string {
	least := 1.
	for _, set := range sets {
		if len(set.Results) < reports.IntervalRepeats {
			continue
		}
		for _, m := range reports.MeanIntervals(set.Results) {
			least = min(least, m.Confidence)
		}
	}
	if least >= 0.95 {
		return ""
	}
	return ", of percentiles " + view.Number(100*least, 1) + " %"
}
