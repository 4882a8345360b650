package view

// Heats is how many levels a heat map has; the last is what failed.
const Heats = 6

// HeatCell is one cell: how bad it is, from 0, and what a hover says.
type HeatCell struct {
	Row, Column int
	Heat        int
	Tip         string
}

// HeatMap is a square matrix by colour.
type HeatMap struct {
	Title, Desc string
	Down, Right string   // what rows and columns are
	Names       []string // of the rows, and of the columns
	Cells       []HeatCell
	Key         [Heats]string // what each level means
}

func (*HeatMap) isChart() {}
