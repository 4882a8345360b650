package text

import (
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// impaired is the curve of streams against what the path did: each by its own on the
// first path.
func (p *printer) impaired(results []reports.Result) {
	type curve struct {
		stack, op  string
		size       int64
		depth, qps int
	}
	var order []curve
	points := map[curve][]*reports.Result{}
	for i := range results {
		r := &results[i]
		if r.Impairment == "" || r.Throughput == nil {
			continue
		}
		k := curve{r.Stack, r.Workload + " " + r.Op, r.SizeBytes, r.Depth, r.QPs}
		if !slices.Contains(order, k) {
			order = append(order, k)
		}
		points[k] = append(points[k], r)
	}
	if len(order) == 0 {
		return
	}
	t := &view.Table{Columns: []view.Column{{Name: "#bytes"}, {Name: "path", Left: true}, {Name: "stack", Left: true},
		{Name: "bandwidth", Unit: "MiB/s"}, {Name: "of the first"}}}
	for _, k := range order {
		first := points[k][0].Throughput.BytesPerSecond
		for _, r := range points[k] {
			share := "-"
			if first > 0 {
				share = fmt.Sprintf("%.3fx", r.Throughput.BytesPerSecond/first)
			}
			t.Add(view.Cell{Text: view.Integer(k.size)}, view.Cell{Text: view.Printable(r.Impairment)},
				view.Cell{Text: view.Printable(r.Stack)},
				view.Cell{Text: view.Number(r.Throughput.BytesPerSecond/(1<<20), 2)}, view.Cell{Text: share})
		}
	}
	p.line("")
	p.styled(bold, "throughput against the path")
	p.table(t)
}
