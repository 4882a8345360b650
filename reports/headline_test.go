package reports_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	paramserverkind "github.com/rdmaperf/rdmaperf/reports/kinds/paramserver"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
)

// The first sentence of a page is right for one stack, for arms of one stack, for
// stacks that have a best, for stacks side by side without one, and for stacks that
// share no conditions.
func TestHeadlines(t *testing.T) {
	only := func(d *reports.Document, keep func(r *reports.Result) bool) *reports.Document {
		d.Results = slices.DeleteFunc(d.Results, func(r reports.Result) bool { return !keep(&r) })
		return d
	}
	plain := func(r *reports.Result) bool { return !strings.HasPrefix(r.Stack, "sched") }
	for name, c := range map[string]struct {
		doc  *reports.Document
		want string
	}{
		"one stack":                  {only(starvationDocument(), func(r *reports.Result) bool { return strings.HasPrefix(r.Stack, "sched(drr)") }), "One stack was measured: sched(drr)+iwarp(crc)."},
		"arms of one stack":          {only(trainDocument(), plain), "One stack was measured, in 2 arms (fifo, priority): iwarp(crc)."},
		"one arm of one stack":       {only(trainDocument(), func(r *reports.Result) bool { return plain(r) && paramserverkind.Of(r).Arm == "fifo" }), "One stack was measured: iwarp(crc)."},
		"trainings of two stacks":    {trainDocument(), "is fastest in "},
		"disciplines, which tie":     {starvationDocument(), "2 stacks were measured under the same conditions"},
		"stacks that share no place": {only(trainDocument(), func(r *reports.Result) bool { return plain(r) == (paramserverkind.Of(r).ComputeRatio == 0) }), "No two stacks were measured under the same conditions"},
	} {
		p := page(t, pages.Options{}, c.doc)
		_, h1, _ := strings.Cut(p, "<h1>")
		h1, _, _ = strings.Cut(h1, "</h1>")
		if got := strings.ReplaceAll(h1, "<wbr/>", ""); !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
