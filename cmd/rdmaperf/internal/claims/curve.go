package claims

import (
	"fmt"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
)

// Curve is a figure over a dimension, as the paper has it and as it is here.
type Curve struct {
	What   string   // the figure, its unit, and of what
	Dim    string   // of conditions
	Points []string // its values
	Unit   float64  // what is 1 in the table: 1e3 of a time is a microsecond
	Lines  []Line
}

// Line is one of a curve.
type Line struct {
	Name      string
	Published []string // a value for each point; nil: the paper has no such line
	Here      At       // without a figure: nothing here is like it
	Also      *Run     // has the points that the run of Here lacks; nil: none
}

// Table is a curve as text: a head, and a row for each line, whose name is its first cell.
type Table struct {
	What string     `json:"what"`
	Head []string   `json:"head"`
	Rows [][]string `json:"rows"`
}

func (c *Curve) table(read reader) Table {
	t := Table{What: c.What, Head: append([]string{c.Dim}, c.Points...)}
	for _, l := range c.Lines {
		if l.Published != nil {
			t.Rows = append(t.Rows, append([]string{l.Name + ", published"}, l.Published...))
		}
		if l.Here.Figure == "" {
			continue
		}
		row := []string{l.Name + ", here"}
		for _, p := range c.Points {
			cell := "-"
			at := l.Here.with(c.Dim + "=" + p)
			s, err := read(at)
			if at.Run = l.Also; err != nil && l.Also != nil {
				s, err = read(at)
			}
			if err == nil {
				var all []answer.Value
				for _, v := range s.Rounds {
					all = append(all, v)
				}
				cell = digits(answer.RatioOf(all, nil, answer.Level(1)).Median / c.Unit)
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func (t *Table) text(indent string) string {
	var b strings.Builder
	block(&b, indent, t.What)
	all := append([][]string{t.Head}, t.Rows...)
	widths := make([]int, len(t.Head))
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range all {
		fmt.Fprintf(&b, "%s  %-*s", indent, widths[0], row[0])
		for i, cell := range row[1:] {
			fmt.Fprintf(&b, "  %*s", widths[i+1], cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (t *Table) markdown() string {
	line := func(cells []string) string { return "| " + strings.Join(cells, " | ") + " |\n" }
	s := t.What + ":\n\n" + line(t.Head) + "|---|" + strings.Repeat("--:|", len(t.Head)-1) + "\n"
	for _, row := range t.Rows {
		s += line(row)
	}
	return s
}
