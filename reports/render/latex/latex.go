// Package latex writes the tables of a page for papers: a file for \input, in plain LaTeX with booktabs. Characters
// that have no command stand as question marks, so that every engine takes the file.
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

// Write writes every table of a page as a float, with conditions, environment and command in its caption.
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
	return reports.WriteAll(w, "latex", out.Bytes())
}

// wide is how many columns a table in smaller type has at least. Arbitrary: eight fill a column of article at 10
// points.
const wide = 8

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
	for _, s := range []string{note, view.When(t.Note != note, t.Note), view.When(bounds, "> is at least that.")} {
		if s != "" {
			out.WriteString(" " + Text(s))
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
	texts := view.Each(cells, func(c view.GridCell) string { return Text(c.Text) })
	out.WriteString(strings.Join(texts, " & ") + " \\\\\n")
}

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
	return view.When(len(all) > 0, "Measured with "+strings.Join(all, "; and with ")+".")
}

// commands are signs that have a meaning, a ligature or no place in OT1. Brackets and the star are in groups: at the
// begin of a row they would be arguments.
var commands = map[rune]string{
	'\\': `\textbackslash{}`, '{': `\{`, '}': `\}`, '$': `\$`, '&': `\&`, '#': `\#`, '_': `\_`, '%': `\%`,
	'^': `\textasciicircum{}`, '~': `\textasciitilde{}`, '<': `\textless{}`, '>': `\textgreater{}`, '|': `\textbar{}`,
	'[': `{[}`, ']': `{]}`, '*': `{*}`, '"': `{''}`, '`': "{`}", '\'': `{'}`,
	'µ': `$\mu$`, 'μ': `$\mu$`, '×': `$\times$`, '÷': `$\div$`, '±': `$\pm$`, '≤': `$\le$`, '≥': `$\ge$`,
	'·': `$\cdot$`, '…': `\ldots{}`,
	'–': `{--}`, '—': `{---}`, '\u202f': `\,`, '\u00a0': `~`, '✓': `$\surd$`,
}

// Text makes one line of LaTeX that reads as s does.
func Text(s string) string {
	var b strings.Builder
	last := rune(0)
	for _, r := range strings.Join(strings.FieldsFunc(view.Visible(s), func(r rune) bool { return r == ' ' }), " ") {
		switch c, known := commands[r]; {
		case known:
			b.WriteString(c)
		case r == '-' && last == '-', r == ',' && last == ',':
			b.WriteString("{}" + string(r)) // no dash of two hyphens, no quote of two commas
		case r < ' ' || r > '~':
			b.WriteByte('?')
		default:
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}
