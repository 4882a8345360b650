package text

import (
	"strings"
	"unicode/utf8"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// layout returns the table's lines, in at most width columns where that is
// possible without losing a digit.
func layout(t *view.Table, width int) []string {
	heads := [][]string{make([]string, len(t.Columns))}
	for i, c := range t.Columns {
		heads[0][i] = c.Name
		if c.Unit != "" {
			heads[0][i] += "[" + c.Unit + "]"
		}
	}
	gap := "  "
	widths, total := columnWidths(t, heads, gap)
	if total > width {
		heads = [][]string{make([]string, len(t.Columns)), make([]string, len(t.Columns))}
		for i, c := range t.Columns {
			heads[0][i] = c.Name
			if c.Unit != "" {
				heads[1][i] = "[" + c.Unit + "]"
			}
		}
		if widths, total = columnWidths(t, heads, gap); total > width {
			gap = " "
		}
	}

	marked := markedColumns(t)
	line := func(cells []view.Cell) string {
		var b strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text))
			if i > 0 {
				b.WriteString(gap)
			}
			if t.Columns[i].Left {
				b.WriteString(c.Text + pad)
			} else {
				b.WriteString(pad + c.Text)
			}
			switch {
			case c.Mark:
				b.WriteByte('*')
			case marked[i]:
				b.WriteByte(' ')
			}
		}
		return strings.TrimRight(b.String(), " ")
	}

	var lines []string
	for _, head := range heads {
		cells := make([]view.Cell, len(head))
		for i, text := range head {
			cells[i].Text = text
		}
		lines = append(lines, line(cells))
	}
	for _, r := range t.Rows {
		if r.Span != "" {
			lines = append(lines, wrap(r.Span, width, "")...)
		} else {
			lines = append(lines, line(r.Cells))
		}
	}
	return lines
}

// columnWidths returns the width of each column and of the whole table.
func columnWidths(t *view.Table, heads [][]string, gap string) (widths []int, total int) {
	widths = make([]int, len(t.Columns))
	for i := range widths {
		for _, head := range heads {
			widths[i] = max(widths[i], utf8.RuneCountInString(head[i]))
		}
		for _, r := range t.Rows {
			if r.Span == "" {
				widths[i] = max(widths[i], utf8.RuneCountInString(r.Cells[i].Text))
			}
		}
		total += widths[i]
	}
	for _, m := range markedColumns(t) {
		if m {
			total++
		}
	}
	return widths, total + len(gap)*(len(widths)-1)
}

// markedColumns says which columns need room for a mark.
func markedColumns(t *view.Table) []bool {
	m := make([]bool, len(t.Columns))
	for _, r := range t.Rows {
		for i, c := range r.Cells {
			m[i] = m[i] || c.Mark
		}
	}
	return m
}

// wrap breaks text between words into lines of at most width; a longer word
// stands alone. Lines after the first begin with indent.
func wrap(text string, width int, indent string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
