package text

import (
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// directionColumns are those of a throughput; directionCells are the rows below.
func directionColumns(results []*reports.Result, u view.Units) []view.Column {
	columns := throughputColumns(u.Gbits)
	if slices.ContainsFunc(results, func(r *reports.Result) bool { return len(r.Directions()) > 1 }) {
		columns = slices.Insert(slices.Clone(columns), 1, view.Column{Name: "direction", Left: true})
	}
	return columns
}

func directionCells(r *reports.Result, u view.Units) [][]view.Cell {
	var rows [][]view.Cell
	all := r.Directions()
	for _, d := range all {
		cells := throughputCells(d.Result, u.Gbits)
		if len(all) > 1 {
			cells = slices.Insert(cells, 1, view.Cell{Text: d.Name})
		}
		rows = append(rows, cells)
	}
	return rows
}
