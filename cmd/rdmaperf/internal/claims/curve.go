package claims

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render/html"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Curve is a figure over a dimension, as the paper has it and as it is here.
type Curve struct {
	What   string   // the figure, its unit, and of what
	Dim    string   // of conditions, or where the stack of a line has a %, of what takes its place
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
			at := c.at(l, p)
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

func (c *Curve) at(l Line, point string) At {
	at := l.Here
	if stack, ends, ok := strings.Cut(at.Stack, "%"); ok {
		at.Stack = stack + point + ends
		return at
	}
	return at.with(c.Dim + "=" + point)
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

// Chart draws the curve: what was published is thin, and has the colour of the same line as measured here.
func (t Table) Chart(id string) template.HTML {
	c := &view.LineChart{Title: t.What, Desc: "the figures of the table below", XLabel: t.Head[0],
		X: view.Scale{Lo: math.Inf(1), Hi: math.Inf(-1)}, YUnit: digits}
	for _, p := range t.Head[1:] {
		x := position(p)
		c.X.Lo, c.X.Hi = min(c.X.Lo, x), max(c.X.Hi, x)
		c.XTicks = append(c.XTicks, view.Tick{At: x, Label: p})
	}
	c.X.Log = c.X.Lo > 0
	slots := map[string]int{}
	for _, row := range t.Rows {
		name, published := strings.CutSuffix(row[0], ", published")
		name = strings.TrimSuffix(name, ", here")
		if _, ok := slots[name]; !ok {
			slots[name] = len(slots)
		}
		s := view.Series{Name: row[0], Slot: slots[name], Thin: published}
		for i, cell := range row[1:] {
			y, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				y = math.NaN() // not measured
			}
			s.Points = append(s.Points, view.Point{X: position(t.Head[i+1]), Y: y,
				Tip: row[0] + ", " + t.Head[i+1] + ": " + cell})
		}
		c.Series = append(c.Series, s)
	}
	return html.Lines(c, id)
}

func position(point string) float64 {
	n, err := reports.ParseSize(point)
	if err != nil {
		return number(point)
	}
	return float64(n)
}
