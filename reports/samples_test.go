package reports_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

func TestSampleWriterGolden(t *testing.T) {
	var b bytes.Buffer
	w := must(reports.NewSampleWriter(&b))(t)
	for _, row := range []struct {
		result int
		set    string
		s      reports.Sample
		open   bool
	}{
		{0, reports.SamplesLatency, reports.Sample{OffsetNs: 5213, Ns: 4998}, false},
		{0, reports.SamplesLatency, reports.Sample{Thread: 1, OffsetNs: 5214, Ns: 0}, false},
		{1, reports.SamplesLatency, reports.Sample{OffsetNs: 70_000_000_000, Ns: 61_000_000_000, ServiceNs: 3000},
			true},
		{2, reports.SamplesProbeLoaded, reports.Sample{OffsetNs: 9, Ns: -1}, false},
	} {
		noError(t, w.Write(row.result, row.set, row.s, row.open))
	}
	noError(t, w.Flush())
	golden(t, "samples.csv", b.Bytes())
}

// A million rows must not cost a million allocations between two windows.
func TestSampleWriterAllocatesNothing(t *testing.T) {
	w := must(reports.NewSampleWriter(new(discard)))(t)
	s := reports.Sample{Thread: 3, OffsetNs: 1e12, Ns: 1e9, ServiceNs: 1e9}
	if n := testing.AllocsPerRun(1000, func() { w.Write(7, reports.SamplesLatency, s, true) }); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

type discard struct{}

func (*discard) Write(b []byte) (int, error) { return len(b), nil }

func TestSampleWriterReturnsTheWritersError(t *testing.T) {
	w, err := reports.NewSampleWriter(brokenWriter{})
	for i := 0; err == nil && i < 100_000; i++ {
		err = w.Write(0, reports.SamplesLatency, reports.Sample{}, false)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "write raw samples: ") {
		t.Errorf("error %v, want the writer's", err)
	}
}

// Where the samples are stands in every view, and what is not there.
func TestRawSamplesAreNamed(t *testing.T) {
	d := goldenDocument()
	d.Error, d.Results = nil, d.Results[:2]
	d.Results[0].RawSamples = []reports.RawSamples{{Set: reports.SamplesLatency, File: "samples.csv", Count: 600_000,
		Limit: 1_000_000}}
	d.Results[1].RawSamples = []reports.RawSamples{{Set: reports.SamplesLatency, File: "samples.csv", Count: 1_000_000,
		Dropped: 1_000_000, Limit: 1_000_000}}
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-samples.txt", text(t, d, textformat.Options{}))
	p := page(t, pages.Options{}, d)
	contains(t, p, "Raw samples", ">samples.csv<", `<td class="n warn">1000000</td>`)
}
