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

// NameCell names its row.
func NameCell(s string) GridCell { return GridCell{Text: Visible(s), Head: true} }

// TextCell is text of any origin.
func TextCell(s string) GridCell { return GridCell{Text: Visible(s)} }

// NumberCell is a figure as text.
func NumberCell(s string) GridCell { return GridCell{Text: s, Class: "n"} }

// HeadCells are headings.
func HeadCells(names ...string) []GridCell {
	cells := make([]GridCell, len(names))
	for i, n := range names {
		cells[i] = GridCell{Text: n}
	}
	return cells
}
