package latex

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Write writes every table of a page as a float, with conditions, environment and command
// in its caption. The same input gives the same bytes.
func Write(w io.Writer, docs []*reports.Document, o page.Options) error {
	p := page.New(docs, o)
	var out bytes.Buffer
	out.WriteString("% Tables by rdmaperf: \\input this file. The preamble needs \\usepackage{booktabs}.\n")
	where := runs(docs)
	n := 0
	for _, r := range p.Results {
		for _, t := range r.Main {
			n++
			t.Caption = r.Title + ": " + t.Caption
			table(&out, n, t, r.Note, where)
		}
	}
	if c := p.Conformance; c != nil {
		n++
		table(&out, n, c.Summary, "", where)
	}
	if n == 0 {
		out.WriteString("% no results\n")
	}
	for _, d := range docs {
		if e := d.Error; e != nil {
			fmt.Fprintf(&out, "%% run ended early: %s\n", Text(e.Operation+": "+e.Message))
		}
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write latex: %w", err)
	}
	return nil
}

// wide is the number of columns from which on a table is set in smaller type. Arbitrary:
// eight of figures fill a column of article at 10 points.
const wide = 8

// table writes one float.
func table(out *bytes.Buffer, n int, t view.Grid, note, where string) {
	columns := t.Columns()
	var align strings.Builder
	for _, c := range columns {
		if strings.HasPrefix(c.Class, "n") {
			align.WriteByte('r')
		} else {
			align.WriteByte('l')
		}
	}
	bounds := false
	for _, row := range t.Rows {
		for _, c := range row {
			bounds = bounds || strings.HasPrefix(c.Text, ">")
		}
	}
	size := "\\small"
	if len(columns) >= wide {
		size = "\\scriptsize\\setlength{\\tabcolsep}{3pt}"
	}
	fmt.Fprintf(out, "\n\\begin{table}[htbp]\n\\centering%s\n\\caption[%s]{%s.", size, Text(t.Caption), Text(t.Caption))
	for _, s := range []struct {
		text string
		is   bool
	}{{note, note != ""}, {t.Note, t.Note != "" && t.Note != note},
		{"> is at least that.", bounds}} {
		if s.is {
			out.WriteString(" " + Text(s.text))
		}
	}
	fmt.Fprintf(out, " %s}\n\\label{tab:rdmaperf-%d}\n\\begin{tabular}{%s}\n\\toprule\n", where, n, align.String())
	line(out, columns)
	out.WriteString("\\midrule\n")
	for _, row := range t.Rows {
		line(out, row)
	}
	out.WriteString("\\bottomrule\n\\end{tabular}\n\\end{table}\n")
}

func line(out *bytes.Buffer, cells []view.GridCell) {
	for i, c := range cells {
		if i > 0 {
			out.WriteString(" & ")
		}
		out.WriteString(Text(c.Text))
	}
	out.WriteString(" \\\\\n")
}

// runs says for each document where it was measured and how.
func runs(docs []*reports.Document) string {
	var all []string
	for _, d := range docs {
		parts := []string{"rdmaperf " + d.Environment.Version, d.Environment.Go,
			d.Environment.OS + " " + d.Environment.Kernel, fmt.Sprintf("%d × %s", d.Environment.CPUs,
				d.Environment.CPU)}
		if d.Environment.Hypervisor {
			parts = append(parts, "virtual machine")
		}
		if e := d.ServerEnvironment; e != nil {
			parts = append(parts, fmt.Sprintf("server: %s %s, %d × %s", e.OS, e.Kernel, e.CPUs, e.CPU))
		}
		s := Text(strings.Join(parts, ", "))
		if len(d.Command) > 0 {
			s += ": \\texttt{" + Text(strings.Join(d.Command, " ")) + "}"
		}
		if d.Error != nil {
			s += " (ended early)"
		}
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return "Measured with " + strings.Join(all, "; and with ") + "."
}
