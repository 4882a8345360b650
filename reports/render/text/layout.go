package text

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// layout returns the table's lines, in at most width columns where no digit is lost by that.
func layout(t *view.Table, width int) []string {
	spares := view.Each(t.Columns, func(c view.Column) int { return c.Spare })
	for spare := slices.Max(append(spares, 0)); spare > 0 && narrowest(t) > width; spare-- {
		t = without(t, spare)
	}
	heads := [][]string{view.Each(t.Columns, func(c view.Column) string { return c.Name + bracketed(c.Unit) })}
	gap := "  "
	widths, total := columnWidths(t, heads, gap)
	if total > width {
		heads = splitHeads(t)
		if widths, total = columnWidths(t, heads, gap); total > width {
			gap = " "
			total -= len(widths) - 1
		}
		narrow(t, widths, heads, total-width)
	}

	marked := markedColumns(t)
	line := func(cells []view.Cell) string {
		var b strings.Builder
		for i, c := range cells {
			long := utf8.RuneCountInString(c.Text) > widths[i]
			pad := strings.Repeat(" ", max(widths[i]-utf8.RuneCountInString(c.Text), 0))
			if i > 0 {
				b.WriteString(gap)
			}
			if long && t.Columns[i].Left { // the rest of the row stands on the next line
				at := utf8.RuneCountInString(b.String())
				b.WriteString(strings.Join(view.Folded(c.Text, width-at), "\n"+strings.Repeat(" ", at)))
				b.WriteString("\n" + strings.Repeat(" ", at+widths[i]))
			} else if t.Columns[i].Left {
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
		lines = append(lines, line(view.Cells(head...)))
	}
	for _, r := range t.Rows {
		if r.Span != "" {
			lines = append(lines, view.Wrap(r.Span, width, "")...)
		} else {
			lines = append(lines, strings.Split(line(r.Cells), "\n")...)
		}
	}
	return lines
}

// leastLeft is how narrow a column of names may get. Arbitrary: short names keep their line.
const leastLeft = 12

// narrow takes what a table is too wide from its widest column of texts at the left, if that suffices.
func narrow(t *view.Table, widths []int, heads [][]string, excess int) {
	at := -1
	for i, c := range t.Columns[:len(t.Columns)-1] {
		if c.Left && (at < 0 || widths[i] > widths[at]) {
			at = i
		}
	}
	if excess <= 0 || at < 0 {
		return
	}
	least := leastLeft
	for _, h := range heads {
		least = max(least, utf8.RuneCountInString(h[at]))
	}
	if widths[at]-excess >= least {
		widths[at] -= excess
	}
}

func narrowest(t *view.Table) int {
	_, total := columnWidths(t, splitHeads(t), " ")
	return total
}

func splitHeads(t *view.Table) [][]string {
	return [][]string{view.Each(t.Columns, func(c view.Column) string { return c.Name }),
		view.Each(t.Columns, func(c view.Column) string { return bracketed(c.Unit) })}
}

func without(t *view.Table, spare int) *view.Table {
	out := &view.Table{Columns: view.Only(t.Columns, func(c view.Column) bool { return c.Spare != spare })}
	for _, r := range t.Rows {
		row := view.Row{Span: r.Span}
		for i, c := range r.Cells {
			if t.Columns[i].Spare != spare {
				row.Cells = append(row.Cells, c)
			}
		}
		out.Rows = append(out.Rows, row)
	}
	return out
}

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

func markedColumns(t *view.Table) []bool {
	m := make([]bool, len(t.Columns))
	for _, r := range t.Rows {
		for i, c := range r.Cells {
			m[i] = m[i] || c.Mark
		}
	}
	return m
}

// inMilliseconds is the table with its times in milliseconds, where no time in it is below one.
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
