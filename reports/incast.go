package reports

// Incast is how one server's throughput was shared among many clients. A rate is
// that of one client over its own window.
type Incast struct {
	Clients           int     `json:"clients"`
	MinBytesPerSecond float64 `json:"min_bytes_per_second"`
	MaxBytesPerSecond float64 `json:"max_bytes_per_second"`

	// Jain is the fairness index of the clients' rates (Jain, Chiu, Hawe 1984): 1 when
	// all have the same, 1/n when one of n has everything.
	Jain      float64       `json:"jain"`
	PerClient []ClientShare `json:"per_client,omitempty"`
}

// ClientShare is one client's part.
type ClientShare struct {
	Operations     int64   `json:"operations"`
	DurationNs     int64   `json:"duration_ns"`
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// JainIndex is the square of the sum over n times the sum of the squares; 0 when
// nobody has anything.
func JainIndex(rates []float64) float64 {
	most := 0.0
	for _, r := range rates {
		most = max(most, r)
	}
	if !(most > 0) {
		return 0
	}
	var sum, squares float64
	for _, r := range rates {
		r /= most // squares of large rates must not overflow
		sum += r
		squares += r * r
	}
	return sum * sum / (float64(len(rates)) * squares)
}

// figure of an incast, in thresholds and comparisons.
func incastMetric(name string, q quantity, of func(in *Incast) float64) metric {
	return metric{name, q, func(r *Result) (float64, bool) {
		if r.Incast == nil {
			return 0, false
		}
		return of(r.Incast), true
	}}
}

// medianIncast has the medians of the repeats; whose share was which is lost.
func medianIncast(all []*Result) *Incast {
	of := func(figure func(in *Incast) float64) float64 {
		values := make([]float64, len(all))
		for i, r := range all {
			values[i] = figure(r.Incast)
		}
		return median(values)
	}
	return &Incast{Clients: all[0].Incast.Clients,
		MinBytesPerSecond: of(func(in *Incast) float64 { return in.MinBytesPerSecond }),
		MaxBytesPerSecond: of(func(in *Incast) float64 { return in.MaxBytesPerSecond }),
		Jain:              of(func(in *Incast) float64 { return in.Jain })}
}

// incastTable shows how even the shares were.
func (p *textPrinter) incastTable(results []*Result) {
	unit := throughputColumns(p.Gbits)[2].unit
	t := table{columns: []column{{name: "clients"}, {name: "#bytes"}, {name: "BW slowest", unit: unit}, {name: "BW fastest", unit: unit}, {name: "Jain index"}}}
	for _, r := range results {
		if in := r.Incast; in != nil {
			t.add(cell{text: integer(int64(in.Clients))}, cell{text: integer(r.SizeBytes)},
				cell{text: bandwidth(in.MinBytesPerSecond, p.Gbits)}, cell{text: bandwidth(in.MaxBytesPerSecond, p.Gbits)}, cell{text: number(in.Jain, 4)})
		}
	}
	if len(t.rows) > 0 {
		p.wrapped("shares of the clients; the Jain index is 1 when all are the same:")
		p.table(&t)
	}
}

// incastShares is the same for a page.
func incastShares(k condition, samples []*sample) htmlTable {
	t := htmlTable{Caption: k.title() + ": shares of the clients", Note: k.describe(),
		Head: headCells("stack", "size", "clients", "slowest MiB/s", "fastest MiB/s", "Jain index")}
	for _, s := range samples {
		if in := s.Incast; in != nil {
			t.Rows = append(t.Rows, []htmlCell{nameCell(s.name()), numberCell(sizeLabel(s.SizeBytes)), numberCell(integer(int64(in.Clients))),
				numberCell(bandwidth(in.MinBytesPerSecond, false)), numberCell(bandwidth(in.MaxBytesPerSecond, false)), numberCell(number(in.Jain, 4))})
		}
	}
	return t
}
