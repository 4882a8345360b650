package results

import (
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Of is the detail of a bidirectional stream, nil for any other.
func Of(r *reports.Result) *Bidirectional { return reports.DetailOf[Bidirectional](r) }

// Bidirectional is the detail of streams both ways, and Direction one of them.
type (
	Bidirectional = drive.Bidirectional
	Direction     = drive.Direction
)
