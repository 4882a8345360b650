package reports_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	starvationkind "github.com/rdmaperf/rdmaperf/reports/kinds/starvation"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// starvationDocument is a curve of two disciplines.
func starvationDocument() *reports.Document {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for _, load := range []float64{0, 50, 100} {
		for _, policy := range []string{"strict", "drr"} {
			low := 1e9 * (1 - load/100)
			if policy == "drr" {
				low = max(low, 3e8)
			}
			d.Results = append(d.Results, reports.Result{
				Stack: "sched(" + policy + ")+iwarp(crc)", Label: reports.LabelSoft, Workload: "starvation", Op: "write", SizeBytes: 65536, Depth: 16, QPs: 1, Threads: 1,
				Polling: reports.PollingBusy, MeasuredBy: "client", DurationNs: 1e9, Operations: 20, Verified: true,
				Kind: kind("starvation"), Detail: &starvationkind.Starvation{HighLoadPercent: load, HighPriority: 1, CapacityBytesPerSecond: 1e9,
					High: starvationkind.ClassShare{Operations: 10, BytesPerSecond: 1e9 - low}, Low: starvationkind.ClassShare{Operations: 10, BytesPerSecond: low}},
			})
		}
	}
	return of(d)
}

// A starvation curve stands in every format, and is compared point by point.
func TestStarvation(t *testing.T) {
	d := starvationDocument()
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-starvation.txt", text(t, d, textformat.Options{}))
	if b := string(bench(t, d)); !strings.Contains(b, "/high_load_percent=50/") || !strings.Contains(b, " low.bw-B/s ") {
		t.Errorf("no benchmark of two classes:\n%s", b)
	}
	var page bytes.Buffer
	if err := htmlformat.Write(&page, []*reports.Document{d}, pages.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`id="starvation"`, "Load of the high class [% of capacity]", "Throughput by class, 64 KiB"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	// Two disciplines, two classes: nothing left is a point, too.
	if n := strings.Count(page.String(), "high load 100 %\n"); n != 4 {
		t.Errorf("%d points at 100 %%, want 4", n)
	}
	c, err := reports.Compare(d, starvationDocument(), nil)
	if err != nil || len(c.Points) != 6 || len(c.Unlike) != 0 || len(c.Points[0].Changes) != 3 {
		t.Fatalf("%v: %+v", err, c)
	}
	repeated := starvationDocument()
	repeated.Results = nil
	for i := range 3 {
		for _, r := range starvationDocument().Results[2:4] {
			r.Repeat = i + 1
			repeated.Results = append(repeated.Results, r)
		}
	}
	repeated.Repeats = reports.SummariseRepeats(repeated.Results)
	reporttest.Validate(t, encode(t, repeated))
	if got := string(text(t, repeated, textformat.Options{})); len(repeated.Repeats) != 2 || !strings.Contains(got, "high load 50 %: medians of 3 repeats; low BW spread 0.0 %") {
		t.Errorf("%d summaries of repeats:\n%s", len(repeated.Repeats), got)
	}
	floor, err := reports.ParseThreshold("low.bw<100MB/s", kinds)
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := reports.CheckThresholds(d, []reports.Threshold{floor}); err != nil || len(lines) != 1 {
		t.Errorf("%q, %v, want the floor missed by one discipline", lines, err)
	}
}
