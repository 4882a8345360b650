package text

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// remarks are what a reader has to know before believing a row.
func (p *printer) remarks(g *reports.Grouped) {
	results := g.Results
	if ns := reports.ParameterNumber(results[0], "loop_overhead_ns"); ns > 0 && p.Verbose {
		p.wrapped("the measuring loop itself takes " + view.Number(ns, 0) + " ns of a round trip (on a null device)")
	}
	var names []string
	of := map[string][]*reports.Result{}
	for _, r := range results {
		name := g.RowName(r)
		if of[name] == nil {
			names = append(names, name)
		}
		of[name] = append(of[name], r)
	}
	for _, name := range names {
		if points := of[name]; len(points) > 1 {
			p.remarksOf(name, points, func(r *reports.Result) string { return resultName(g, r) })
		} else {
			name = resultName(g, points[0])
			p.remarksOf(name, points, func(*reports.Result) string { return name })
		}
	}
}

// remarksOf are those of the points of one name, such as repeats or the steps of a course of
// time: which was disturbed and why, and what is counted of all. nameOf is what one of them is called.
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
