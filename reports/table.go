package reports

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// column is one heading. Where the table is too wide with "name[unit]" on one
// line, the units move to a line of their own; they are never left out.
type column struct {
	name, unit string
	left       bool // names are aligned left, numbers right
}

// cell is one entry; a mark points to a footnote and does not move the digits.
type cell struct {
	text string
	mark bool
}

// row is a line of cells, or with span set one sentence across the table.
type row struct {
	span  string
	cells []cell
}

type table struct {
	columns []column
	rows    []row
}

func (t *table) add(cells ...cell) { t.rows = append(t.rows, row{cells: cells}) }

// layout returns the table's lines, in at most width columns where that is
// possible without losing a digit.
func (t *table) layout(width int) []string {
	heads := [][]string{make([]string, len(t.columns))}
	for i, c := range t.columns {
		heads[0][i] = c.name
		if c.unit != "" {
			heads[0][i] += "[" + c.unit + "]"
		}
	}
	gap := "  "
	widths, total := t.widths(heads, gap)
	if total > width {
		heads = [][]string{make([]string, len(t.columns)), make([]string, len(t.columns))}
		for i, c := range t.columns {
			heads[0][i] = c.name
			if c.unit != "" {
				heads[1][i] = "[" + c.unit + "]"
			}
		}
		if widths, total = t.widths(heads, gap); total > width {
			gap = " "
		}
	}

	marked := t.marked()
	line := func(cells []cell) string {
		var b strings.Builder
		for i, c := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.text))
			if i > 0 {
				b.WriteString(gap)
			}
			if t.columns[i].left {
				b.WriteString(c.text + pad)
			} else {
				b.WriteString(pad + c.text)
			}
			switch {
			case c.mark:
				b.WriteByte('*')
			case marked[i]:
				b.WriteByte(' ')
			}
		}
		return strings.TrimRight(b.String(), " ")
	}

	var lines []string
	for _, head := range heads {
		cells := make([]cell, len(head))
		for i, text := range head {
			cells[i].text = text
		}
		lines = append(lines, line(cells))
	}
	for _, r := range t.rows {
		if r.span != "" {
			lines = append(lines, wrap(r.span, width, "")...)
		} else {
			lines = append(lines, line(r.cells))
		}
	}
	return lines
}

// widths returns the width of each column and of the whole table.
func (t *table) widths(heads [][]string, gap string) (widths []int, total int) {
	widths = make([]int, len(t.columns))
	for i := range widths {
		for _, head := range heads {
			widths[i] = max(widths[i], utf8.RuneCountInString(head[i]))
		}
		for _, r := range t.rows {
			if r.span == "" {
				widths[i] = max(widths[i], utf8.RuneCountInString(r.cells[i].text))
			}
		}
		total += widths[i]
	}
	for _, m := range t.marked() {
		if m {
			total++
		}
	}
	return widths, total + len(gap)*(len(widths)-1)
}

// marked says which columns need room for a mark.
func (t *table) marked() []bool {
	m := make([]bool, len(t.columns))
	for _, r := range t.rows {
		for i, c := range r.cells {
			m[i] = m[i] || c.mark
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

// printable replaces control characters: names and messages may come from a
// peer or a file and must not move the cursor or begin a line of their own.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError || r == '\u2028' || r == '\u2029' {
			return '?'
		}
		return r
	}, s)
}
