// Package curves is the detail of workloads that measure some values at the points of one axis.
package curves

import (
	"fmt"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Point is one point of all curves of an operation. Values are medians of their repeats where they are of samples.
type Point struct {
	X      float64            `json:"x"`
	Arm    string             `json:"arm,omitempty"` // of several lines of one stack
	Values map[string]float64 `json:"values"`
}

func (*Point) Member(workload string) string { return workload }

// Of is the detail of such a result, nil for any other.
func Of(r *reports.Result) *Point { return reports.DetailOf[Point](r) }

// Results completes what is declared of a workload. axes are the axis of each operation, note is what else shapes all
// figures, and all figures are shown.
func Results(w reports.Workload, note string, axes map[string]reports.DimDef) *reports.Workload {
	w.Schema = schema(&w)
	w.Detail = func() reports.Detail { return new(Point) }
	for _, f := range w.Figures {
		w.Shown = append(w.Shown, f.Name)
	}
	w.Describe = func(w *reports.Workload, r *reports.Result) {
		p := Of(r)
		r.Note = note
		r.Dims = reports.DimsOf([]reports.DimDef{axes[r.Op], {Name: "arm"}}, p.X, p.Arm)
		for _, f := range w.Figures {
			if v, ok := p.Values[f.Name]; ok {
				r.Figures = append(r.Figures, reports.Figure{Name: f.Name, Quantity: f.Quantity, Better: f.Better,
					Value: v})
			}
		}
	}
	return &w
}

func schema(w *reports.Workload) string {
	var values strings.Builder
	for i, f := range w.Figures {
		if i > 0 {
			values.WriteString(",")
		}
		fmt.Fprintf(&values, "\n          %q: {\"type\": \"number\"}", f.Name)
	}
	return fmt.Sprintf(`{
  %q: {
    "type": "object",
    "description": %q,
    "required": ["x", "values"],
    "properties": {
      "x": {"type": "number", "description": "where on the axis that op names"},
      "arm": {"type": "string", "description": "of several lines of one stack"},
      "values": {
        "type": "object",
        "properties": {%s
        },
        "additionalProperties": false
      }
    }
  }
}
`, w.Name, "a point of the curves of the workload "+w.Name+"; times are nanoseconds, medians of their repeats",
		values.String())
}
