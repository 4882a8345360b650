package reports_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// What moved is shown with its side; what stood still stays in the document.
func TestCountersAreShown(t *testing.T) {
	d := goldenDocument()
	d.Error, d.Results = nil, d.Results[:2]
	d.Results[0].Counters = &reports.Counters{
		Client: []reports.DeviceCounters{{Device: "mlx5_0", Counters: map[string]int64{"icrc_errors": 0}},
			{Device: "mlx5_0", Port: 1, Counters: map[string]int64{"port_xmit_data": 19_200_000, "out_of_sequence": 0,
				"port_rcv_data": -5}}},
		Server: []reports.DeviceCounters{{Device: "rxe0", Port: 1, Counters: map[string]int64{"sent_pkts": 600_000,
			"rcvd_pkts": 600_000}}},
	}
	tcp := []reports.DeviceCounters{{Device: "kernel TCP (all connections)",
		Counters: map[string]int64{"RetransSegs": 0}}}
	d.Results[1].Counters = &reports.Counters{Client: tcp, Server: tcp}
	reporttest.Validate(t, encode(t, d))
	golden(t, "text-counters.txt", text(t, d, textformat.Options{}))
	golden(t, "text-counters-all.txt", text(t, d, textformat.Options{Counters: true}))
	d.ServerEnvironment = &d.Environment
	contains(t, string(text(t, d, textformat.Options{Counters: true, Width: 200})), "client kernel TCP",
		"server kernel TCP") // two machines are not shown as one
	p := page(t, pages.Options{}, d)
	contains(t, p, "Device counters that moved", ">mlx5_0/1<", ">19200000<", "! reset, -5", ">rxe0/1<")
	lacks(t, p, "icrc_errors", "RetransSegs") // which did not move
}

func TestCounterChangesNeedBothReadings(t *testing.T) {
	one := []reports.DeviceCounters{{Device: "a", Counters: map[string]int64{"x": 1}}}
	other := []reports.DeviceCounters{{Device: "b", Counters: map[string]int64{"x": 1}},
		{Device: "a", Port: 1, Counters: map[string]int64{"x": 1}}, {Device: "a", Counters: map[string]int64{"y": 1}}}
	for _, c := range [][2][]reports.DeviceCounters{{one, nil}, {nil, one}, {one, other}} {
		if got := reports.CounterChanges(c[0], c[1]); got != nil {
			t.Errorf("changes from %+v to %+v: %+v, want none", c[0], c[1], got)
		}
	}
}

// The first device counts like every other.
func TestCounterChangesOfEachDevice(t *testing.T) {
	before := []reports.DeviceCounters{{Device: "a", Counters: map[string]int64{"x": 1, "gone": 5}},
		{Device: "b", Port: 1, Counters: map[string]int64{"x": 9}}}
	after := []reports.DeviceCounters{{Device: "b", Port: 1, Counters: map[string]int64{"x": 12}},
		{Device: "a", Counters: map[string]int64{"x": 3, "new": 5}}}
	want := []reports.DeviceCounters{{Device: "b", Port: 1, Counters: map[string]int64{"x": 3}},
		{Device: "a", Counters: map[string]int64{"x": 2}}}
	same(t, "changes", want, reports.CounterChanges(before, after))
}

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
	w := must(reports.NewSampleWriter(io.Discard))(t)
	s := reports.Sample{Thread: 3, OffsetNs: 1e12, Ns: 1e9, ServiceNs: 1e9}
	if n := testing.AllocsPerRun(1000, func() { w.Write(7, reports.SamplesLatency, s, true) }); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}

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

// Ours have the sizes of its rows, the point that is meant, and a dash where nothing was measured.
func TestOursStandBesidePublishedFigures(t *testing.T) {
	p := reports.Published{Columns: []string{"#bytes", "of", "latency[us]", "[Mb/s]"},
		Rows: [][]string{{"64", "A", "6.63", "-"}, {"64", "B", "3.59", "-"}, {"1000", "A", "-", "5"},
			{"9", "A", "1", "2"}},
		Beside: []reports.Beside{{Workload: "latency", Op: "send", Depth: 1, Figure: reports.FigureP50,
			Column: "latency[us]"},
			{Workload: "throughput", Op: "send", Depth: 1, Figure: reports.FigureMbit, Column: "[Mb/s]"},
			// a figure overwrites no name
			{Workload: "latency", Op: "send", Depth: 1, Figure: reports.FigureP50, Column: "of"}}}
	lat := func(stack string, size int64, op string, ns float64) reports.Result {
		return reports.Result{Stack: stack, Workload: "latency", Op: op, SizeBytes: size, Depth: 1,
			Latency: &reports.Latency{P50: ns}}
	}
	rows := p.With([]reports.Result{lat("a", 64, "send", 1000), lat("a", 64, "send", 3000), lat("b", 64, "send", 500),
		lat("c", 64, "write", 1), lat("b", 99, "send", 1),
		{Stack: "b", Workload: "throughput", Op: "send", SizeBytes: 1000, Depth: 1,
			Throughput: &reports.Throughput{BytesPerSecond: 1e9}},
		{Stack: "a", Workload: "throughput", Op: "send", SizeBytes: 1000, Depth: 16,
			Throughput: &reports.Throughput{BytesPerSecond: 2e9}}})
	want := [][]string{{"64", "A", "6.63", "-"}, {"64", "B", "3.59", "-"}, {"64", "a", "2.00", "-"},
		{"64", "b", "0.50", "-"}, {"1000", "A", "-", "5"}, {"1000", "b", "-", "8000.00"}, {"9", "A", "1", "2"}}
	if same(t, "rows", want, rows); len(p.Rows) != 4 {
		t.Error("the published table itself grew")
	}
}

// TestPublishedColumnsOfWords: what is aligned like words has some, and a row of ours is no published one.
func TestPublishedColumnsOfWords(t *testing.T) {
	p := reports.Published{Columns: []string{"#bytes", "of", "us"},
		Rows: [][]string{{"64", "them", "-"}, {"64", "-", "6.63"}}}
	for k, want := range []bool{false, true, false, false} {
		if p.Names(k) != want {
			t.Errorf("column %d has words: %v", k, !want)
		}
	}
	if !p.Has([]string{"64", "them", "-"}) || p.Has([]string{"64", "us", "-"}) {
		t.Error("who published a row")
	}
}

// A table of the same title is the same table, whatever run brought it.
func TestAPublishedTableStandsOnce(t *testing.T) {
	var d reports.Document
	d.AddPublished([]reports.Published{{Title: "one"}, {Title: "two"}, {Title: "one"}})
	d.AddPublished([]reports.Published{{Title: "two"}, {Title: "three"}})
	same(t, "titles", []string{"one", "two", "three"},
		view.Each(d.Published, func(p reports.Published) string { return p.Title }))
}

// Numbers among the parameters are read whether they were just made or read back from JSON.
func TestNumbersOfParameters(t *testing.T) {
	r := reports.Result{Parameters: map[string]any{"made": 3, "long": int64(1 << 40), "read": 2.5, "word": "7"}}
	for name, want := range map[string]float64{"made": 3, "long": 1 << 40, "read": 2.5, "word": 0, "none": 0} {
		if got := reports.ParameterNumber(&r, name); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
