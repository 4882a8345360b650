package page

import (
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// intervalTable shows the means over repeats with their confidence intervals,
// and where there are too few repeats for one.
func intervalTable(of reports.Condition, samples []*reports.Measured) view.Grid {
	t := view.Grid{Caption: of.Title() + ": over repeats, with confidence intervals (" + reports.IntervalMethod + ")",
		Note: of.Describe(),
		Head: view.HeadCells("stack", "size", "repeats", "figure", "median or mean", "from", "to", "confidence")}
	for _, s := range reports.Split(samples) {
		var repeats []*reports.Result
		for _, r := range s.Runs {
			repeats = append(repeats, r.Result)
		}
		_, sets := reports.RepeatSets(repeats)
		for _, set := range sets {
			n := len(set.Results)
			name, size, count := view.NameCell(s.Series), view.NumberCell(reports.SizeLabel(set.Size)),
				view.NumberCell(view.Integer(int64(n)))
			if n < 2 {
				continue
			}
			if n < reports.IntervalRepeats {
				t.Rows = append(t.Rows, []view.GridCell{name, size, count,
					{Text: "! " + reports.TooFewRepeats(n), Class: "warn"}, view.NumberCell("-"), view.NumberCell("-"),
					view.NumberCell("-"), view.NumberCell("-")})
				continue
			}
			for _, m := range reports.MeanIntervals(set.Results) {
				t.Rows = append(t.Rows, []view.GridCell{name, size, count, view.TextCell(m.Figure),
					view.NumberCell(reports.QuantityLabel(m.Quantity(), m.Center())),
					view.NumberCell(reports.QuantityLabel(m.Quantity(), m.Low)),
					view.NumberCell(reports.QuantityLabel(m.Quantity(), m.High)),
					view.NumberCell(view.Number(100*m.Confidence, 1) + " %")})
			}
		}
	}
	return t
}
