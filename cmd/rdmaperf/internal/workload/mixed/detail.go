package mixed

import "github.com/rdmaperf/rdmaperf/reports"

// Mixed is what reads and writes got in one window. Latencies are from the post, or of an
// open loop from the intended start, until the completion, of a write that is done by a
// read until that of the read.
type Mixed struct {
	ReadPercent         int     `json:"read_percent"` // asked for
	AchievedReadPercent float64 `json:"achieved_read_percent"`
	Blocks              string  `json:"blocks"` // as --bssplit has them
	SpanBytes           int64   `json:"span_bytes"`
	WriteDone           string  `json:"write_done"` // completion or read

	Reads  Direction `json:"reads"`
	Writes Direction `json:"writes"`
}

// Direction is one of both. Latency is nil where nothing was measured.
type Direction struct {
	Operations          int64            `json:"operations"`
	OperationsPerSecond float64          `json:"operations_per_second"`
	BytesPerSecond      float64          `json:"bytes_per_second"`
	Latency             *reports.Latency `json:"latency,omitempty"`
	Blocks              []BlockCount     `json:"blocks"`
}

// BlockCount is how many operations had a size, and how many of a hundred were to.
type BlockCount struct {
	SizeBytes  int64 `json:"size_bytes"`
	Percent    int   `json:"percent"`
	Operations int64 `json:"operations"`
}

// Of is the detail of a mix of reads and writes, nil for any other.
func Of(r *reports.Result) *Mixed { return reports.DetailOf[Mixed](r) }

// sides are both directions, in the order of tables.
var sides = []struct {
	name string
	of   func(d *Mixed) *Direction
}{
	{"reads", func(d *Mixed) *Direction { return &d.Reads }},
	{"writes", func(d *Mixed) *Direction { return &d.Writes }},
}
