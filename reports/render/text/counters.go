package text

import (
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// resultName tells one result from all others of its group: its row, what the table has
// beside it, and the repeat.
func resultName(g *reports.Grouped, r *reports.Result) string {
	name := g.RowName(r)
	if r.Repeat > 0 {
		name += ", repeat " + view.Integer(int64(r.Repeat))
	}
	return name
}

// counters show what moved on the devices, or with the option everything. On one
// machine both sides may have read the same device, which is then shown once.
func (p *printer) counters(g *reports.Grouped) {
	for _, r := range g.Results {
		name := resultName(g, r)
		for _, s := range r.Counters.Sides() {
			for _, d := range s.Devices {
				if d.Detail && !p.Counters {
					continue
				}
				who := s.Side + " "
				if p.one && r.Counters.Shared(&d) {
					if who = ""; s.Side == "server" {
						continue
					}
				}
				var parts []string
				for _, c := range d.Moved(p.Counters) {
					part := c + " " + view.Integer(d.Counters[c])
					if d.Counters[c] < 0 {
						part += " (reset)"
					}
					parts = append(parts, part)
				}
				if len(parts) > 0 {
					p.wrapped(name + ", " + who + d.Name() + " counted: " + strings.Join(parts, ", "))
				}
			}
		}
	}
}
