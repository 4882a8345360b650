package results

import "github.com/rdmaperf/rdmaperf/reports"

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

// Of is the detail of an incast, nil for any other.
func Of(r *reports.Result) *Incast { return reports.DetailOf[Incast](r) }
