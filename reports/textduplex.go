package reports

import "slices"

// directions are the rows of a result in a throughput table: one, or of a
// bidirectional stream each direction and the sum.
func (r *Result) directions() []direction {
	b := r.Bidirectional
	if b == nil {
		return []direction{{"", r}}
	}
	one := func(d Direction) *Result {
		return &Result{SizeBytes: r.SizeBytes, Operations: d.Operations, DurationNs: d.DurationNs,
			Throughput: &Throughput{BytesPerSecond: d.BytesPerSecond, OperationsPerSecond: d.OperationsPerSecond}}
	}
	return []direction{{"client to server", one(b.FromClient)}, {"server to client", one(b.FromServer)}, {"sum", r}}
}

type direction struct {
	name string
	*Result
}

// directionColumns are those of a throughput; directionCells are the rows below.
func (l load) directionColumns(gbits bool) []column {
	columns := throughputColumns(gbits)
	if l.bothWays {
		columns = slices.Insert(slices.Clone(columns), 1, column{name: "direction", left: true})
	}
	return columns
}

func (l load) directionCells(r *Result, gbits bool) [][]cell {
	var rows [][]cell
	for _, d := range r.directions() {
		cells := throughputCells(d.Result, gbits)
		if l.bothWays {
			cells = slices.Insert(cells, 1, cell{text: d.name})
		}
		rows = append(rows, cells)
	}
	return rows
}

// medianDirections has the medians of each direction.
func medianDirections(all []*Result) *Bidirectional {
	b := *all[0].Bidirectional
	side := func(d *Direction, from func(b *Bidirectional) *Direction) {
		of := func(figure func(d *Direction) float64) float64 {
			values := make([]float64, len(all))
			for i, r := range all {
				values[i] = figure(from(r.Bidirectional))
			}
			return median(values)
		}
		d.Operations = int64(of(func(d *Direction) float64 { return float64(d.Operations) }))
		d.DurationNs = int64(of(func(d *Direction) float64 { return float64(d.DurationNs) }))
		d.BytesPerSecond = of(func(d *Direction) float64 { return d.BytesPerSecond })
		d.OperationsPerSecond = of(func(d *Direction) float64 { return d.OperationsPerSecond })
	}
	side(&b.FromClient, func(b *Bidirectional) *Direction { return &b.FromClient })
	side(&b.FromServer, func(b *Bidirectional) *Direction { return &b.FromServer })
	return &b
}
