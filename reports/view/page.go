// Package view is what reports are drawn from: tables, charts and words as data. It knows no result. Numbers of tables
// are text already; a chart's values are numbers.
package view

import (
	"slices"
	"strings"
)

// Section is a group of charts.
type Section struct {
	ID, Title, Intro string
	Figures          []Figure
}

// Figure is one chart with the figures it was drawn from.
type Figure struct {
	Title, Caption string
	Shows          string // its result in a few words, behind the title
	Chart          Chart
	Data           Grid
}

// Chart is data that a drawing is made of.
type Chart interface{ isChart() }

// Grid is a table of text.
type Grid struct {
	Caption, Note string
	Head          []GridCell
	Rows          [][]GridCell
}

// GridCell is one entry; the class is how it looks: n a number, bad, warn, good.
type GridCell struct {
	Text  string
	Class string
	Head  bool // names its row
}

// Columns is Head with the alignment of what stands below.
func (t Grid) Columns() []GridCell {
	head := slices.Clone(t.Head)
	if len(t.Rows) > 0 {
		for i, c := range t.Rows[0] {
			if i < len(head) && strings.HasPrefix(c.Class, "n") {
				head[i].Class = "n"
			}
		}
	}
	return head
}

// Add appends a row.
func (t *Grid) Add(cells ...[]GridCell) { t.Rows = append(t.Rows, slices.Concat(cells...)) }

// NameCell names its row.
func NameCell(s string) GridCell { return GridCell{Text: Visible(s), Head: true} }

// TextCell is text of any origin.
func TextCell(s string) GridCell { return GridCell{Text: Visible(s)} }

// NumberCell is a figure as text.
func NumberCell(s string) GridCell { return GridCell{Text: s, Class: "n"} }

// NumberCells are figures as text.
func NumberCells(texts ...string) []GridCell { return Each(texts, NumberCell) }

// HeadCells are headings.
func HeadCells(names ...string) []GridCell {
	return Each(names, func(name string) GridCell { return GridCell{Text: name} })
}

// Column is one heading. Units move to a line of their own where the table is too wide.
type Column struct {
	Name, Unit string
	Left       bool // names are aligned left, numbers right
	Spare      int  // left out where the table is too wide, the highest first; 0 always stays
}

// Cell is one entry; a mark points to a footnote and does not move the digits.
type Cell struct {
	Text string
	Mark bool
}

// Row is a line of cells, or with span set one sentence across the table.
type Row struct {
	Span  string
	Cells []Cell
}

// Table is a table of a text.
type Table struct {
	Columns []Column
	Rows    []Row
}

// Add appends a row.
func (t *Table) Add(cells ...Cell) { t.Rows = append(t.Rows, Row{Cells: cells}) }

// Cells are entries without a mark.
func Cells(texts ...string) []Cell {
	return Each(texts, func(text string) Cell { return Cell{Text: text} })
}
