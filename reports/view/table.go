package view

// Column is one heading. Where the table is too wide with "name[unit]" on one
// line, the units move to a line of their own; they are never left out.
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
