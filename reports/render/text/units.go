package text

import (
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// inMilliseconds is the table with its times in milliseconds, where no time in it is below
// one; else the table itself. A time may have a sign of a lower bound in front.
func inMilliseconds(t *view.Table) *view.Table {
	timed := func(i int) bool { return t.Columns[i].Unit == "us" }
	times := 0
	for _, r := range t.Rows {
		for i, c := range r.Cells {
			if !timed(i) || c.Text == "" || c.Text == "-" {
				continue
			}
			v, err := strconv.ParseFloat(strings.TrimPrefix(c.Text, ">"), 64)
			if err != nil || v < 1000 {
				return t // an interval in words, or a time that is no milliseconds
			}
			times++
		}
	}
	if times == 0 {
		return t
	}
	out := &view.Table{}
	for i, c := range t.Columns {
		if timed(i) {
			c.Unit = "ms"
		}
		out.Columns = append(out.Columns, c)
	}
	for _, r := range t.Rows {
		row := view.Row{Span: r.Span}
		for i, c := range r.Cells {
			bound := strings.HasPrefix(c.Text, ">")
			if v, err := strconv.ParseFloat(strings.TrimPrefix(c.Text, ">"), 64); err == nil && timed(i) {
				if c.Text = view.Number(v/1000, 2); bound {
					c.Text = ">" + c.Text
				}
			}
			row.Cells = append(row.Cells, c)
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}
