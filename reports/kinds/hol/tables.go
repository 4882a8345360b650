package hol

import (
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// tables show how the probes' latency grows beside the bulk stream, and what the
// probes cost the stream.
func tables(_ *reports.Grouped, results []*reports.Result, u view.Units) []reports.Block {
	t := &view.Table{Columns: []view.Column{{Name: "bulk", Unit: "bytes"}, {Name: "arm", Left: true}, {Name: "probes"},
		{Name: "p50", Unit: "us"}, {Name: "p99", Unit: "us"}, {Name: "max", Unit: "us", Spare: 1},
		{Name: "p50 growth"}, {Name: "p99 growth"}, {Name: "bulk", Unit: u.Name()}}}
	for _, r := range results {
		h := Of(r)
		for _, v := range []struct {
			probes   string
			l        *reports.Latency
			p50, p99 string // growth
			bulk     float64
		}{
			{"alone", &h.ProbeAlone, "", "", h.BulkAloneBytesPerSecond},
			{"loaded", &h.ProbeLoaded, view.Ratio(h.ProbeLoaded.P50, h.ProbeAlone.P50), view.Ratio(h.ProbeLoaded.P99, h.ProbeAlone.P99), h.BulkLoadedBytesPerSecond},
		} {
			arm := view.Printable(h.arm())
			if v.probes == "loaded" && h.saturated() {
				arm, v.p50, v.p99 = arm+", saturated", "-", "-" // the prober's own backlog is no property of the path
			}
			p50, p99 := reports.PercentileCell(v.l, "p50"), reports.PercentileCell(v.l, "p99")
			t.Add(view.Cell{Text: view.Integer(h.BulkSizeBytes)}, view.Cell{Text: arm}, view.Cell{Text: v.probes}, p50, p99,
				view.Cell{Text: v.l.MaxText()}, view.Cell{Text: v.p50}, view.Cell{Text: v.p99}, view.Cell{Text: u.Bandwidth(v.bulk)})
		}
	}
	return []reports.Block{{Lead: "", Table: t}}
}
