package text

import (
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// published shows figures of others with their source, and ours beside them.
func (p *printer) published(all []reports.Published, results []reports.Result) {
	for i := range all {
		t := &view.Table{}
		for k, c := range all[i].Columns {
			t.Columns = append(t.Columns, view.Column{Name: view.Printable(c), Left: all[i].Names(k)})
		}
		for _, row := range all[i].With(results) {
			cells := make([]view.Cell, 0, len(t.Columns))
			for k := range t.Columns {
				c := view.Cell{Text: "-"}
				if k < len(row) {
					c.Text = view.Printable(row[k])
				}
				cells = append(cells, c)
			}
			t.Add(cells...)
		}
		p.line("")
		p.styled(bold, all[i].Title)
		p.wrapped(all[i].Source)
		p.table(t)
	}
}
