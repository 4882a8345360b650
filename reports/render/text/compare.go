package text

import (
	"bytes"
	"fmt"
	"io"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

const compareWidth = 80

// WriteComparison prints a comparison as a table, one line per figure.
func WriteComparison(w io.Writer, c *reports.Comparison) error {
	var out bytes.Buffer
	for _, l := range ComparedRunLines(c) {
		fmt.Fprintln(&out, l)
	}
	for _, d := range c.Unlike {
		fmt.Fprintf(&out, "not alike: %s\n", d)
	}
	t := view.Table{Columns: []view.Column{{Name: "  figure", Left: true}, {Name: "old"}, {Name: "new"},
		{Name: "change"}, {Name: "test", Left: true}}}
	for _, p := range c.Points {
		t.Rows = append(t.Rows, view.Row{Span: p.Point})
		for _, ch := range p.Changes {
			cells := view.Cells(ch.Texts()...)
			cells[0].Text, cells[4].Mark = "  "+ch.Figure, ch.Few()
			t.Add(cells...)
		}
	}
	out.WriteByte('\n')
	for _, l := range layout(&t, compareWidth) {
		out.WriteString(l + "\n")
	}
	if note := c.Footnote(); note != "" {
		out.WriteString("\n" + note + "\n")
	}
	for i, l := range c.OnlyLines() {
		if i == 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintln(&out, l)
	}
	return reports.WriteAll(w, "comparison", out.Bytes())
}

// ComparedRunLines name each run in one line, and what of it the machine disturbed.
func ComparedRunLines(c *reports.Comparison) (lines []string) {
	for i, r := range []*reports.ComparedRun{&c.Old, &c.New} {
		which := []string{"old: ", "new: "}[i]
		lines = append(lines, view.Printable(fmt.Sprintf("%srdmaperf %s, %s, %s%s%s", which, r.Version, r.Go,
			r.Started.UTC().Format("2006-01-02T15:04:05Z"), view.When(r.Hostname != "", ", on "+r.Hostname),
			view.When(r.Error != "", ", ended early: "+r.Error))))
		for _, l := range r.Disturbed {
			lines = append(lines, which+l)
		}
	}
	return lines
}
