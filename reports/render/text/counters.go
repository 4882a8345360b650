package text

import (
	"fmt"
	"maps"
	"slices"
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

// counters show what moved on the devices in all repeats of a point, or with the option everything. On one machine both
// sides may have read the same device, which is then shown once.
func (p *printer) counters(g *reports.Grouped) {
	type key struct{ row, who, device string }
	var order []key
	sums := map[key]map[string]int64{}
	reset := map[key]map[string]bool{}
	repeats := map[string]int{}
	for _, r := range g.Results {
		row := g.RowName(r)
		repeats[row]++
		for _, s := range r.Counters.Sides() {
			for _, d := range s.Devices {
				k := key{row, s.Side + " ", d.Name()}
				if p.one && r.Counters.Shared(&d) {
					if k.who = ""; s.Side == "server" {
						continue
					}
				}
				if d.Detail && !p.Counters {
					continue
				}
				if sums[k] == nil {
					order, sums[k], reset[k] = append(order, k), map[string]int64{}, map[string]bool{}
				}
				for name, v := range d.Counters {
					sums[k][name] += v
					reset[k][name] = reset[k][name] || v < 0
				}
			}
		}
	}
	for _, k := range order {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(sums[k])) {
			part := name + " " + view.Integer(sums[k][name])
			if reset[k][name] {
				part += " (reset)"
			} else if sums[k][name] == 0 && !p.Counters {
				continue
			}
			parts = append(parts, part)
		}
		if len(parts) == 0 {
			continue
		}
		if n := repeats[k.row]; n > 1 {
			k.row += fmt.Sprintf(", %d repeats", n)
		}
		p.wrapped(k.row + ", " + k.who + k.device + " counted: " + strings.Join(parts, ", "))
	}
}
