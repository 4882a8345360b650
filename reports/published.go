package reports

import (
	"slices"
	"strconv"
)

// Published is a table of somebody else's figures as text. Where anything is Beside, its first column is a size in
// bytes and its second whose figures they are.
type Published struct {
	Title   string     `json:"title"`
	Source  string     `json:"source"`
	Columns []string   `json:"columns"`
	Rows    [][]string `json:"rows"`
	// Beside are figures of ours that stand among them, a row for each size and stack.
	Beside []Beside `json:"beside,omitempty"`
}

// Beside says which of our figures are of the same kind as published ones.
type Beside struct {
	Workload string `json:"workload"`
	Op       string `json:"op"`
	Depth    int    `json:"depth"`
	Figure   string `json:"figure"` // FigureP50 or FigureMbit
	Column   string `json:"column"` // that it stands in
}

// Figures that may be next to published ones.
const (
	FigureP50  = "p50"  // of the latency, in microseconds
	FigureMbit = "mbit" // of the throughput, in 10^6 bits a second
)

// AddPublished adds tables, each once.
func (d *Document) AddPublished(all []Published) {
	for _, p := range all {
		if !slices.ContainsFunc(d.Published, func(o Published) bool { return o.Title == p.Title }) {
			d.Published = append(d.Published, p)
		}
	}
}

// With are its rows with ours among them: behind those of a size one of every stack that measured it, medians of
// repeats.
func (p *Published) With(results []Result) (rows [][]string) {
	if len(p.Beside) == 0 {
		return p.Rows
	}
	for i, r := range p.Rows {
		rows = append(rows, r)
		if i+1 < len(p.Rows) && p.Rows[i+1][0] == r[0] {
			continue
		}
		for _, of := range GroupBy(Pointers(results), func(o *Result) (string, bool) {
			return o.Stack, strconv.FormatInt(o.SizeBytes, 10) == r[0]
		}) {
			if row := p.ours(of.Samples, r[0], of.Key); row != nil {
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// Names tells whether a column has words, not numbers.
func (p *Published) Names(column int) bool {
	return slices.ContainsFunc(p.Rows, func(row []string) bool {
		if column >= len(row) || row[column] == "-" {
			return false
		}
		_, err := strconv.ParseFloat(row[column], 64)
		return err != nil
	})
}

// Has tells whether a row of With is published, and not ours.
func (p *Published) Has(row []string) bool {
	return slices.ContainsFunc(p.Rows, func(r []string) bool { return slices.Equal(r, row) })
}

func (p *Published) ours(results []*Result, size, stack string) []string {
	row, measured := slices.Repeat([]string{"-"}, len(p.Columns)), false
	row[0], row[1] = size, stack
	for _, b := range p.Beside {
		var values []float64
		for _, r := range results {
			if v, ok := b.of(r); ok {
				values = append(values, v)
			}
		}
		if at := slices.Index(p.Columns, b.Column); at > 1 && len(values) > 0 {
			row[at], measured = strconv.FormatFloat(Median(values), 'f', 2, 64), true
		}
	}
	if !measured {
		return nil
	}
	return row
}

func (b *Beside) of(r *Result) (float64, bool) {
	switch {
	case r.Workload != b.Workload || r.Op != b.Op || r.Depth != b.Depth:
	case b.Figure == FigureP50 && r.Latency != nil:
		return r.Latency.P50 / 1000, true
	case b.Figure == FigureMbit && r.Throughput != nil:
		return r.Throughput.BytesPerSecond * 8 / 1e6, true
	}
	return 0, false
}
