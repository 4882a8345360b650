package text

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

func (p *printer) remarks(g *reports.Grouped) {
	results := g.Results
	if ns := reports.ParameterNumber(results[0], "loop_overhead_ns"); ns > 0 && p.Verbose {
		p.wrapped("the measuring loop itself takes " + view.Number(ns, 0) + " ns of a round trip (on a null device)")
	}
	for _, of := range reports.GroupBy(results, func(r *reports.Result) (string, bool) { return g.RowName(r), true }) {
		name := of.Key
		if len(of.Samples) == 1 {
			name = resultName(g, of.Samples[0])
		}
		p.remarksOf(name, of.Samples, func(r *reports.Result) string { return resultName(g, r) })
	}
}

// remarksOf are those of the points of one name, such as repeats; nameOf is what one of them is called.
func (p *printer) remarksOf(name string, points []*reports.Result, nameOf func(*reports.Result) string) {
	var worst *reports.Result // the first, or one that is impossible
	var disturbed int
	var compared reports.Verification
	var failed, clamped int64
	var gc reports.GC
	for _, r := range points {
		if !r.Disturbance.Quiet() {
			if disturbed++; worst == nil || worst.Disturbance.Verdict != reports.VerdictImpossible &&
				r.Disturbance.Verdict == reports.VerdictImpossible {
				worst = r
			}
		}
		if v := r.Verification; v != nil && v.Mode != reports.VerifyNone {
			compared.Mode = v.Mode
			compared.Add(v)
		}
		failed += r.Errors
		if r.Latency != nil {
			clamped += r.Latency.Clamped
		}
		if r.GC != nil {
			gc.ClientCollections += r.GC.ClientCollections
			gc.ServerCollections += r.GC.ServerCollections
		}
	}
	if worst != nil {
		why := nameOf(worst) + ": " + worst.Disturbance.String()
		if disturbed > 1 {
			why += fmt.Sprintf("; %d of %d points are no better", disturbed, len(points))
		}
		p.styled(red, why)
	}
	if compared.Whole < compared.Messages {
		p.wrapped(name + ": " + compared.String())
	}
	if failed > 0 {
		p.styled(red, fmt.Sprintf("%s: %s", name, view.Plural(failed, "failed operation")))
	}
	if clamped > 0 {
		p.wrapped(fmt.Sprintf("%s: %s outside 0..60 s, counted at the limit in percentiles", name,
			view.Plural(clamped, "sample")))
	}
	if gc.ClientCollections+gc.ServerCollections > 0 {
		p.wrapped(fmt.Sprintf("%s: garbage collections in the window: client %d, server %d", name, gc.ClientCollections,
			gc.ServerCollections))
	}
}

func resultName(g *reports.Grouped, r *reports.Result) string {
	return g.RowName(r) + view.When(r.Repeat > 0, ", repeat "+view.Integer(int64(r.Repeat)))
}

// counters show what moved in all repeats of a point. What both sides read on one machine is shown once.
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
