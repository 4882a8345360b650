package reports_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	throughputkind "github.com/rdmaperf/rdmaperf/reports/kinds/throughput"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// Each direction and the sum stand in one table; a repeat's medians are those of
// each direction.
func TestBothDirections(t *testing.T) {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for repeat, f := range []float64{1, 1.2, 0.9} {
		d.Results = append(d.Results, reports.Result{
			Stack: "iwarp(crc)", Label: reports.LabelSoft, Workload: "throughput", Op: "write", SizeBytes: 1 << 20, Depth: 16, QPs: 1, Repeat: repeat + 1,
			Polling: reports.PollingBusy, MeasuredBy: "both", DurationNs: 2e9, Operations: 3000, Verified: true,
			Throughput: &reports.Throughput{BytesPerSecond: 1.5e9 * f, OperationsPerSecond: 1500 * f},
			Kind:       kind("throughput"), Detail: &throughputkind.Bidirectional{
				FromClient: throughputkind.Direction{Operations: 2000, DurationNs: 2e9, BytesPerSecond: 1e9 * f, OperationsPerSecond: 1000 * f},
				FromServer: throughputkind.Direction{Operations: 1000, DurationNs: 2e9, BytesPerSecond: 5e8 * f, OperationsPerSecond: 500 * f},
			},
			Parameters: map[string]any{"bidirectional": true},
		})
	}
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-duplex.txt", text(t, d, textformat.Options{}))
	golden(t, "perftest-duplex.txt", perftest(t, d, false))
	if b := string(bench(t, d)); !strings.Contains(b, "/directions=both") || !strings.Contains(b, " 500000000 from_server.bw-B/s") {
		t.Errorf("no benchmark of both directions:\n%s", b)
	}
	var page bytes.Buffer
	if err := htmlformat.Write(&page, []*reports.Document{d}, pages.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Throughput write in both directions", "server to client"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	one, err := reports.ParseThreshold("from_server.bw<1GB/s", kinds)
	if err != nil {
		t.Fatal(err)
	}
	if lines, err := reports.CheckThresholds(d, []reports.Threshold{one}); err != nil || len(lines) != 1 {
		t.Errorf("%q, %v, want the threshold missed", lines, err)
	}
	// One direction is another point than both.
	single := *d
	single.Results = append([]reports.Result(nil), d.Results...)
	for i := range single.Results {
		single.Results[i].Detail, single.Results[i].Parameters = nil, nil
	}
	if _, err := reports.Compare(d, &single, nil); err != reports.ErrNothingInCommon {
		t.Errorf("compared with one direction: %v", err)
	}
}
