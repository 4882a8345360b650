package results

import (
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Of is the detail of two classes, nil for any other.
func Of(r *reports.Result) *Starvation { return reports.DetailOf[Starvation](r) }

// Starvation is what two classes of one QP got: a high one, which offers a share of
// the capacity, and a low one, which takes what is left.
type Starvation struct {
	HighLoadPercent        float64    `json:"high_load_percent"` // offered, of the capacity
	HighPriority           int        `json:"high_priority"`     // the low class has 0
	CapacityBytesPerSecond float64    `json:"capacity_bytes_per_second"`
	High                   ClassShare `json:"high"`
	Low                    ClassShare `json:"low"`
}

// ClassShare is what one class completed in the window.
type ClassShare struct {
	Operations     int64   `json:"operations"`
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// Contradiction is why the figures cannot be; empty where they can.
func (s *Starvation) Contradiction() string {
	// A twentieth: the capacity is measured in a window of its own.
	if sum := s.High.BytesPerSecond + s.Low.BytesPerSecond; s.CapacityBytesPerSecond > 0 &&
		sum > 1.05*s.CapacityBytesPerSecond {
		return "the classes got " + view.Number(100*sum/s.CapacityBytesPerSecond, 1) + " % of the capacity"
	}
	return ""
}
