package text

import (
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

func column(f reports.Figure, u view.Units) view.Column {
	c := view.Column{Name: reports.FigureLabel(f.Name)}
	switch f.Quantity {
	case reports.QuantityTime:
		c.Unit = "us"
	case reports.QuantityRate:
		c.Unit = "/s"
	case reports.QuantityBytes:
		c.Unit = u.Name()
	case reports.QuantityMemory:
		c.Unit = "KiB"
	}
	return c
}

func cell(r *reports.Result, f reports.Figure, u view.Units) view.Cell {
	switch text := figureText(f, u); r.Mark(f.Name) {
	case "few":
		return view.Cell{Text: "-"}
	case "least":
		return view.Cell{Text: ">" + text}
	default:
		return view.Cell{Text: text}
	}
}

func figureText(f reports.Figure, u view.Units) string {
	switch f.Quantity {
	case reports.QuantityTime:
		return view.Usec(f.Value)
	case reports.QuantityRate:
		return view.Number(f.Value, 0)
	case reports.QuantityBytes:
		return u.Bandwidth(f.Value)
	case reports.QuantityMemory:
		return view.Number(f.Value/1024, 1)
	case reports.QuantityRatio:
		return view.Digits3(f.Value)
	}
	return view.Number(f.Value, -1)
}

// ownFigures are what the workload shows and no other table of a group has.
func ownFigures(rows []*reports.Result) (own []reports.Figure) {
	for _, r := range rows {
		own = append(own, view.Only(r.ShownFigures(), func(f reports.Figure) bool {
			return reports.HasFigure(r.Figures, f.Name)
		})...)
	}
	return reports.OncePerName(own)
}

// longTime is the least time, in ns, that has its column in ms.
const longTime = 1e8

// figureTable has a row for each result; empty where the workload has no figures of its own.
func figureTable(g *reports.Grouped, rows []*reports.Result, u view.Units) *view.Table {
	own := ownFigures(rows)
	t := &view.Table{}
	if len(own) == 0 {
		return t
	}
	columns := []view.Column{{Name: "#bytes"}}
	long := make([]bool, len(own)) // times that would be numbers of many digits in us
	for i, f := range own {
		c := column(f, u)
		long[i] = f.Quantity == reports.QuantityTime && slices.ContainsFunc(rows, func(r *reports.Result) bool {
			v, ok := r.Figure(f.Name)
			return ok && v >= longTime
		})
		if long[i] {
			c.Unit = "ms"
		}
		if i >= 3 {
			c.Spare = i // the first say most
		}
		columns = append(columns, c)
	}
	t.Columns = g.PerRow(columns)
	for _, r := range rows {
		cells := []view.Cell{{Text: view.Integer(r.SizeBytes)}}
		for i, f := range own {
			if has, ok := r.Find(f.Name); ok {
				if long[i] {
					has.Value /= 1e3
				}
				cells = append(cells, cell(r, has, u))
			} else {
				cells = append(cells, view.Cell{Text: "-"})
			}
		}
		t.Add(g.PerRowCells(r, cells)...)
	}
	return t
}

// latencyTable has a row for each distribution of each result; only details have the corrected one.
func latencyTable(g *reports.Grouped, rows []*reports.Result, details bool) *view.Table {
	several := slices.ContainsFunc(rows, func(r *reports.Result) bool { return len(r.Latencies) > 0 })
	columns := latencyColumns
	if several {
		columns = slices.Insert(slices.Clone(columns), 1, view.Column{Name: "of", Left: true})
	}
	t := &view.Table{Columns: g.PerRow(columns)}
	spans := map[string]string{"corrected": "corrected for coordinated omission:",
		"service": "without the wait for a late start:"}
	var behind [2][]view.Row // in one table with the raw figures, so that the columns line up
	for _, r := range rows {
		for _, l := range r.Distributions() {
			texts := append([]string{view.Integer(l.SizeBytes)}, l.Latency.Texts()...)
			name := l.Name
			if name == "" || spans[name] != "" {
				name = "operation"
			}
			if several {
				texts = slices.Insert(texts, 1, strings.ReplaceAll(name, "_", " "))
			}
			row := view.Row{Cells: g.PerRowCells(r, view.Cells(texts...))}
			switch l.Name {
			case "corrected":
				if details {
					behind[0] = append(behind[0], row)
				}
			case "service":
				behind[1] = append(behind[1], row)
			default:
				t.Rows = append(t.Rows, row)
			}
		}
	}
	for i, name := range []string{"corrected", "service"} {
		if len(behind[i]) > 0 {
			t.Rows = append(append(t.Rows, view.Row{Span: spans[name]}), behind[i]...)
		}
	}
	return t
}
