package text

import (
	"bytes"
	"fmt"
	"io"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// compareWidth is that of the table, whose rows have the same columns whatever the points
// are called: a point stands on a line of its own above its figures.
const compareWidth = 80

// WriteComparison prints a comparison as a table, one line per figure.
func WriteComparison(w io.Writer, c *reports.Comparison) error {
	var out bytes.Buffer
	for _, r := range []struct {
		which string
		run   *reports.ComparedRun
	}{{"old", &c.Old}, {"new", &c.New}} {
		fmt.Fprintln(&out, ComparedRunLine(r.which, r.run))
		for _, l := range r.run.Disturbed {
			fmt.Fprintf(&out, "%s: %s\n", r.which, l)
		}
	}
	for _, d := range c.Unlike {
		fmt.Fprintf(&out, "not alike: %s\n", d)
	}
	t := view.Table{Columns: []view.Column{{Name: "  figure", Left: true}, {Name: "old"}, {Name: "new"},
		{Name: "change"}, {Name: "test", Left: true}}}
	for _, p := range c.Points {
		t.Rows = append(t.Rows, view.Row{Span: p.Point})
		for _, ch := range p.Changes {
			t.Add(view.Cell{Text: "  " + ch.Figure}, view.Cell{Text: reports.FormatQuantity(ch.Quantity, ch.Old)},
				view.Cell{Text: reports.FormatQuantity(ch.Quantity, ch.New)},
				view.Cell{Text: reports.FormatPercent(ch.Percent)}, view.Cell{Text: ch.Verdict(), Mark: ch.Few()})
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
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return nil
}

// ComparedRunLine names a run in one line.
func ComparedRunLine(which string, r *reports.ComparedRun) string {
	s := fmt.Sprintf("%s: rdmaperf %s, %s, %s", which, view.Printable(r.Version), view.Printable(r.Go),
		r.Started.UTC().Format("2006-01-02T15:04:05Z"))
	if r.Hostname != "" {
		s += ", on " + view.Printable(r.Hostname)
	}
	if r.Error != "" {
		s += ", ended early: " + view.Printable(r.Error)
	}
	return s
}
