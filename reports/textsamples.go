package reports

import "fmt"

// rawSamples say where the samples are, and what is not there.
func (p *textPrinter) rawSamples(results []Result) {
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
		p.wrapped(plural(t.kept, "raw sample") + " in " + f)
		if t.dropped > 0 {
			p.styled(red, fmt.Sprintf("%s above the limit of %d for one point: only the histograms have them", plural(t.dropped, "sample"), t.limit))
		}
	}
}

// rawTable is the same on the page.
func rawTable(of condition, samples []*sample) htmlTable {
	t := htmlTable{Caption: of.title() + ": raw samples", Note: of.describe(), Head: headCells("stack", "size", "samples of", "file", "kept", "not kept", "limit")}
	for _, s := range samples {
		for _, raw := range s.RawSamples {
			dropped := numberCell(integer(raw.Dropped))
			if raw.Dropped > 0 {
				dropped.Class = "n warn"
			}
			t.Rows = append(t.Rows, []htmlCell{nameCell(s.name()), numberCell(sizeLabel(s.SizeBytes)), textCell(raw.Set), textCell(raw.File),
				numberCell(integer(raw.Count)), dropped, numberCell(integer(raw.Limit))})
		}
	}
	return t
}
