package page

import (
	"unicode"
	"unicode/utf8"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// capital begins a heading.
func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// publishedTables are figures of others with ours beside them, a table for each document
// that has some.
func publishedTables(docs []*reports.Document) (all []resultTables) {
	for _, d := range docs {
		for i := range d.Published {
			of := &d.Published[i]
			t := view.Grid{Caption: "Published, and measured here"}
			for _, c := range of.Columns {
				t.Head = append(t.Head, view.TextCell(c))
			}
			for _, row := range of.With(d.Results) {
				cells := make([]view.GridCell, 0, len(of.Columns))
				for k := range of.Columns {
					text := "-"
					if k < len(row) {
						text = row[k]
					}
					switch {
					case !of.Names(k):
						cells = append(cells, view.NumberCell(view.Visible(text)))
					case of.Has(row):
						cells = append(cells, view.TextCell(text))
					default:
						cells = append(cells, view.NameCell(text))
					}
				}
				t.Rows = append(t.Rows, cells)
			}
			all = append(all, resultTables{Title: view.Visible(capital(of.Title)), Note: view.Visible(of.Source),
				Main: filled([]view.Grid{t}, "")})
		}
	}
	return all
}
