package text

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

func (p *printer) seriesTables(g *reports.Grouped) {
	for _, r := range g.Results {
		s := r.Series
		if s == nil {
			continue
		}
		p.wrapped(resultName(g, r) + ", every " + view.Number(float64(s.IntervalNs)/1e6, -1) + " ms:")
		timed := r.Latency != nil ||
			slices.ContainsFunc(s.Points, func(p reports.SeriesPoint) bool { return p.P50 > 0 })
		t := view.Table{Columns: []view.Column{{Name: "from", Unit: "s"}, {Name: "#iterations"}}}
		each := bytesEach(r)
		switch {
		case timed:
			t.Columns = append(t.Columns, latencyTimes("p50", "p99", "max")...)
		case each > 0:
			t.Columns = append(t.Columns, throughputColumns(p.Gbits)[2:]...)
		default:
			t.Columns = append(t.Columns, rateColumn)
		}
		for _, pt := range s.Points {
			texts := []string{view.Number(float64(pt.OffsetNs)/1e9, 3), view.Integer(pt.Operations)}
			switch rate := float64(pt.Operations) / float64(max(s.IntervalNs, 1)) * 1e9; {
			case timed:
				for _, of := range []struct {
					ns   float64
					need int64
				}{{pt.P50, 20}, {pt.P99, 1000}, {pt.Max, 1}} {
					text := "-"
					if pt.Operations >= of.need {
						text = view.Usec(of.ns)
					}
					texts = append(texts, text)
				}
			case each > 0:
				texts = append(texts, view.Bandwidth(rate*each, p.Gbits), view.Number(rate/1e3, 3))
			default:
				texts = append(texts, view.Number(rate/1e3, 3))
			}
			t.Add(view.Cells(texts...)...)
		}
		p.table(&t)
	}
}

func bytesEach(r *reports.Result) float64 {
	if t := r.Throughput; t != nil && t.OperationsPerSecond > 0 {
		return t.BytesPerSecond / t.OperationsPerSecond
	}
	return 0
}

// intervalTables show the means over the repeats of each point with their confidence intervals.
func (p *printer) intervalTables(g *reports.Grouped) {
	_, sets := reports.RepeatSets(g.Results)
	var tables []*view.Table
	add := func(columns []view.Column, set *reports.GroupOf[reports.RepeatPoint, *reports.Result], texts ...string) {
		columns = g.PerRow(slices.Concat([]view.Column{{Name: "#bytes"}, {Name: "repeats"}}, columns))
		i := slices.IndexFunc(tables, func(t *view.Table) bool { return slices.Equal(t.Columns, columns) })
		if i < 0 {
			i = len(tables)
			tables = append(tables, &view.Table{Columns: columns})
		}
		front := g.PerRowCells(set.Samples[0], view.Cells(view.Integer(set.Samples[0].SizeBytes),
			view.Integer(int64(len(set.Samples)))))
		tables[i].Add(append(front, view.Cells(texts...)...)...)
	}
	least := 1. // the confidence of percentiles, which few repeats give
	for _, set := range sets {
		if len(set.Samples) < reports.IntervalRepeats {
			continue
		}
		all := reports.MeanIntervals(set.Samples)
		for _, m := range all {
			least = min(least, m.Confidence)
		}
		find := func(name string) string {
			if m, ok := view.First(all, func(m reports.MeanInterval) bool { return m.Figure == name }); ok {
				return p.interval(m)
			}
			return "-"
		}
		switch {
		case len(set.Samples[0].OwnFigures()) > 0: // too many for a line
			for _, m := range all {
				add([]view.Column{{Name: "figure", Left: true}, {Name: "with its interval"}}, set, m.Figure,
					p.interval(m)+" "+p.unit(m.Quantity()))
			}
		case set.Key.Latency:
			add(latencyTimes("p50", "mean", "p99"), set, find("p50"), find("mean"), find("p99"))
		case set.Key.Throughput:
			add(throughputColumns(p.Gbits)[2:], set, find("bw"), find("rate"))
		}
	}
	fewer := ""
	if least < 0.95 {
		fewer = ", of percentiles " + view.Number(100*least, 1) + " %"
	}
	for i, t := range tables {
		if i == 0 {
			p.wrapped("over the repeats, with 95 % confidence intervals" + fewer + " (" +
				reports.IntervalMethod + "):")
		}
		p.table(t)
	}
}

func (p *printer) interval(m reports.MeanInterval) string {
	show := func(v float64) string {
		switch q := m.Quantity(); q {
		case reports.QuantityRate:
			return view.Number(v/1e3, 3)
		case reports.QuantityCount, reports.QuantityRatio:
			return view.Number(v, 4)
		default:
			return figureText(reports.Figure{Quantity: q, Value: v}, view.Units{Gbits: p.Gbits})
		}
	}
	return show(m.Center()) + " (" + show(m.Low) + ".." + show(m.High) + ")"
}

func (p *printer) unit(q reports.Quantity) string {
	if q == reports.QuantityRate {
		return rateColumn.Unit
	}
	return column(reports.Figure{Quantity: q}, view.Units{Gbits: p.Gbits}).Unit
}
