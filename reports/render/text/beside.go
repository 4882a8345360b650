package text

import (
	"fmt"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

func (p *printer) rawSamples(results []reports.Result) {
	var all []reports.RawSamples
	for _, r := range results {
		all = append(all, r.RawSamples...)
	}
	for i, f := range reports.GroupBy(all, func(s reports.RawSamples) (string, bool) { return s.File, true }) {
		if i == 0 {
			p.line("")
		}
		var sum reports.RawSamples
		for _, s := range f.Samples {
			sum.Count, sum.Dropped, sum.Limit = sum.Count+s.Count, sum.Dropped+s.Dropped, max(sum.Limit, s.Limit)
		}
		p.wrapped(view.Plural(sum.Count, "raw sample") + " in " + f.Key)
		if sum.Dropped > 0 {
			p.styled(red, fmt.Sprintf("%s above the limit of %d for one point: only the histograms have them",
				view.Plural(sum.Dropped, "sample"), sum.Limit))
		}
	}
}

func (p *printer) impaired(results []reports.Result) {
	type curve struct {
		stack, op  string
		size       int64
		depth, qps int
	}
	curves := reports.GroupBy(reports.Pointers(results), func(r *reports.Result) (curve, bool) {
		return curve{r.Stack, r.Workload + " " + r.Op, r.SizeBytes, r.Depth, r.QPs}, r.Impairment != "" && r.Throughput != nil
	})
	if len(curves) == 0 {
		return
	}
	t := &view.Table{Columns: []view.Column{{Name: "#bytes"}, {Name: "path", Left: true}, {Name: "stack", Left: true},
		{Name: "bandwidth", Unit: "MiB/s"}, {Name: "of the first"}}}
	for _, c := range curves {
		first := c.Samples[0].Throughput.BytesPerSecond
		for _, r := range c.Samples {
			share := "-"
			if first > 0 {
				share = fmt.Sprintf("%.3fx", r.Throughput.BytesPerSecond/first)
			}
			t.Add(view.Cells(view.Integer(r.SizeBytes), view.Printable(r.Impairment), view.Printable(r.Stack),
				view.Bandwidth(r.Throughput.BytesPerSecond, false), share)...)
		}
	}
	p.heading("throughput against the path")
	p.table(t)
}

func (p *printer) published(all []reports.Published, results []reports.Result) {
	for i := range all {
		t := &view.Table{}
		for k, c := range all[i].Columns {
			t.Columns = append(t.Columns, view.Column{Name: view.Printable(c), Left: all[i].Names(k)})
		}
		for _, row := range all[i].With(results) {
			texts := slices.Repeat([]string{"-"}, len(t.Columns))
			copy(texts, view.Each(row, view.Printable))
			t.Add(view.Cells(texts...)...)
		}
		p.heading(all[i].Title)
		p.wrapped(all[i].Source)
		p.table(t)
	}
}
