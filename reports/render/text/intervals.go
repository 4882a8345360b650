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
	add := func(columns []view.Column, set *reports.RepeatSet, cells ...view.Cell) {
		columns = g.PerRow(slices.Concat([]view.Column{{Name: "#bytes"}, {Name: "repeats"}}, columns))
		i := slices.IndexFunc(tables, func(t *view.Table) bool { return slices.Equal(t.Columns, columns) })
		if i < 0 {
			i = len(tables)
			tables = append(tables, &view.Table{Columns: columns})
		}
		front := g.PerRowCells(set.Results[0], []view.Cell{{Text: view.Integer(set.Size)},
			{Text: view.Integer(int64(len(set.Results)))}})
		tables[i].Add(append(front, cells...)...)
	}
	for _, set := range sets {
		if len(set.Results) < reports.IntervalRepeats {
			continue
		}
		all := reports.MeanIntervals(set.Results)
		find := func(name string) view.Cell {
			i := slices.IndexFunc(all, func(m reports.MeanInterval) bool { return m.Figure == name })
			if i < 0 {
				return view.Cell{Text: "-"}
			}
			return view.Cell{Text: p.interval(all[i])}
		}
		switch {
		case len(set.Results[0].OwnFigures()) > 0: // too many for a line
			for _, m := range all {
				add([]view.Column{{Name: "figure", Left: true}, {Name: "with its interval"}}, set,
					view.Cell{Text: m.Figure}, view.Cell{Text: p.interval(m) + " " + p.unit(m.Quantity())})
			}
		case set.Latency:
			add(reports.IntervalTimes, set, find("p50"), find("mean"), find("p99"))
		case set.Throughput:
			add(throughputColumns(p.Gbits)[2:], set, find("bw"), find("rate"))
		}
	}
	for i, t := range tables {
		if i == 0 {
			p.wrapped("over the repeats, with 95 % confidence intervals" + fewer(sets) + " (" +
				reports.IntervalMethod + "):")
		}
		p.table(t)
	}
}

// interval is what it is of with its ends, in the units of the columns of a text.
func (p *printer) interval(m reports.MeanInterval) string {
	show := func(v float64) string { return view.Number(v/1e3, 3) }
	switch m.Quantity() {
	case reports.QuantityTime:
		show = view.Usec
	case reports.QuantityBytes:
		show = func(v float64) string { return view.Bandwidth(v, p.Gbits) }
	case reports.QuantityCount, reports.QuantityRatio:
		show = func(v float64) string { return view.Number(v, 4) }
	case reports.QuantityMemory:
		show = func(v float64) string { return view.Number(v/1024, 1) }
	}
	return show(m.Center()) + " (" + show(m.Low) + ".." + show(m.High) + ")"
}

func (p *printer) unit(q reports.Quantity) string {
	switch q {
	case reports.QuantityTime:
		return "us"
	case reports.QuantityBytes:
		return view.Units{Gbits: p.Gbits}.Name()
	case reports.QuantityRate:
		return "k/s"
	case reports.QuantityMemory:
		return "KiB"
	}
	return ""
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
