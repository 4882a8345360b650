package text

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// seriesTables show how each window went, one interval a row.
func (p *printer) seriesTables(g *reports.Grouped) {
	for _, r := range g.Results {
		s := r.Series
		if s == nil {
			continue
		}
		title := g.RowName(r)
		if r.Repeat > 0 {
			title += ", repeat " + view.Integer(int64(r.Repeat))
		}
		p.wrapped(title + ", every " + view.Number(float64(s.IntervalNs)/1e6, -1) + " ms:")
		timed := r.Latency != nil ||
			slices.ContainsFunc(s.Points, func(p reports.SeriesPoint) bool { return p.P50 > 0 })
		t := view.Table{Columns: []view.Column{{Name: "from", Unit: "s"}, {Name: "#iterations"}, rateColumn}}
		each := bytesEach(r)
		if each > 0 && !timed {
			t.Columns = append(t.Columns[:2], view.Column{Name: "bandwidth", Unit: view.Units{Gbits: p.Gbits}.Name()},
				t.Columns[2])
		}
		if timed {
			t.Columns = append(t.Columns[:2], view.Column{Name: "p50", Unit: "us"},
				view.Column{Name: "p99", Unit: "us"}, view.Column{Name: "max", Unit: "us"})
		}
		for _, pt := range s.Points {
			cells := []view.Cell{{Text: view.Number(float64(pt.OffsetNs)/1e9, 3)}, {Text: view.Integer(pt.Operations)}}
			switch {
			case !timed:
				rate := float64(pt.Operations) / float64(max(s.IntervalNs, 1)) * 1e9
				if each > 0 {
					cells = append(cells, view.Cell{Text: view.Bandwidth(rate*each, p.Gbits)})
				}
				cells = append(cells, view.Cell{Text: view.Number(rate/1e3, 3)})
			case pt.Operations == 0:
				cells = append(cells, view.Cell{Text: "-"}, view.Cell{Text: "-"}, view.Cell{Text: "-"})
			default:
				of := func(ns float64, need int64) view.Cell {
					if pt.Operations < need {
						return view.Cell{Text: "-"}
					}
					return view.Cell{Text: view.Usec(ns)}
				}
				cells = append(cells, of(pt.P50, 20), of(pt.P99, 1000), view.Cell{Text: view.Usec(pt.Max)})
			}
			t.Add(cells...)
		}
		if len(t.Rows) > 0 {
			p.table(&t)
		}
	}
}

// bytesEach is what one operation of a result moved; 0 where that is not told.
func bytesEach(r *reports.Result) float64 {
	if t := r.Throughput; t != nil && t.OperationsPerSecond > 0 {
		return t.BytesPerSecond / t.OperationsPerSecond
	}
	return 0
}
