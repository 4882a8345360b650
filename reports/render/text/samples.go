package text

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// rawSamples say where the samples are, and what is not there.
func (p *printer) rawSamples(results []reports.Result) {
	type total struct{ kept, dropped, limit int64 }
	totals := map[string]*total{}
	var files []string
	for i := range results {
		for _, s := range results[i].RawSamples {
			t := totals[s.File]
			if t == nil {
				t = &total{}
				totals[s.File] = t
				files = append(files, s.File)
			}
			t.kept += s.Count
			t.dropped += s.Dropped
			t.limit = max(t.limit, s.Limit)
		}
	}
	if len(files) > 0 {
		p.line("")
	}
	for _, f := range files {
		t := totals[f]
		p.wrapped(view.Plural(t.kept, "raw sample") + " in " + f)
		if t.dropped > 0 {
			p.styled(red, fmt.Sprintf("%s above the limit of %d for one point: only the histograms have them",
				view.Plural(t.dropped, "sample"), t.limit))
		}
	}
}
