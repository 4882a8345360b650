package reports_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render/hlog"
)

// recorded makes a set of samples with its histogram.
func recorded(samples ...int64) *reports.Latency {
	r := reports.NewRecorder()
	for _, ns := range samples {
		r.Record(ns)
	}
	l := r.Snapshot()
	return &l
}

// stalled is a thousand quick samples and one stall of 5 ms.
func stalled() *reports.Latency {
	samples := make([]int64, 0, 1000)
	for i := range int64(999) {
		samples = append(samples, 2300+i%7*100)
	}
	return recorded(append(samples, 5_000_000)...)
}

func histogramDocument() *reports.Document {
	result := func(transport, op string, l *reports.Latency) reports.Result {
		return reports.Result{
			Stack: transport, Transport: transport, Label: reports.LabelSoft, Workload: "latency", Op: op,
			SizeBytes: 4096, Depth: 1, QPs: 1, Threads: 1,
			Polling: reports.PollingBusy, RoundTrip: reports.RoundTripHalf, MeasuredBy: "client",
			DurationNs: 2_500_000_000, Operations: l.Count, Verified: true, Latency: l,
		}
	}
	d := &reports.Document{
		Started: time.Date(2026, 3, 4, 5, 6, 7, 250_000_000, time.UTC),
		Environment: reports.Environment{Version: "v0.1.0", Go: "go1.26.8", Kernel: "6.12.9", CPU: "Example CPU",
			CPUs: 2},
		Results: []reports.Result{
			result("iwarp(crc, fast)", "send", stalled()),
			result("tcp", "send", recorded(3000, 3100, 3200)),
			result("tcp", "send", recorded(0, 59_999_999_999)), // the same point again
		},
	}
	d.Results[0].LatencyCorrected = recorded(1, 2, 3)
	hol := result("tcp", "write", recorded(1))
	hol.Workload, hol.Latency = "hol", nil
	hol.Detail = &probes{Arm: "two-qp", ProbeAlone: *recorded(700, 800), ProbeLoaded: *recorded(9000, 90_000)}
	open := result("tcp", "read", recorded(5000, 6000))
	open.Repeat, open.Rate, open.Arrivals, open.LatencyService = 3, 20_000, "constant", recorded(4000, 4500)
	d.Results = append(d.Results, hol, open)
	return of(d)
}

type tagged struct {
	tag string
	h   *hdrhistogram.Histogram
}

func readLog(t *testing.T, b []byte) []tagged {
	t.Helper()
	r := hdrhistogram.NewHistogramLogReader(bytes.NewReader(b))
	var all []tagged
	for {
		h := must(r.NextIntervalHistogram())(t)
		if h == nil {
			return all
		}
		all = append(all, tagged{h.Tag(), h})
	}
}

// histogramLog is the logs of all sets of samples, behind one header.
func histogramLog(t *testing.T, d *reports.Document) []byte {
	t.Helper()
	dir := t.TempDir()
	names := must(hlog.WriteFiles(dir, d))(t)
	var all []byte
	for i, name := range names {
		b := must(os.ReadFile(filepath.Join(dir, name+".hlog")))(t)
		if _, legend, ok := bytes.Cut(b, []byte("\n\"StartTimestamp")); i > 0 && ok {
			_, b, _ = bytes.Cut(legend, []byte("\n"))
		}
		all = append(all, b...)
	}
	return all
}

// What a public reader finds in the files is what was recorded.
func TestHistogramFilesAreReadBack(t *testing.T) {
	d, dir := histogramDocument(), t.TempDir()
	names := must(hlog.WriteFiles(dir, d))(t)
	want := []struct {
		name, tag string
		l         *reports.Latency
	}{
		{"latency-iwarp_crc__fast_-send-4K", "iwarp(crc__fast)/send/4K", d.Results[0].Latency},
		{"latency-iwarp_crc__fast_-send-4K-corrected", "iwarp(crc__fast)/send/4K/corrected",
			d.Results[0].LatencyCorrected},
		{"latency-tcp-send-4K", "tcp/send/4K", d.Results[1].Latency},
		{"latency-tcp-send-4K-2", "tcp/send/4K", d.Results[2].Latency},
		{"hol-tcp-write-4K-two-qp-alone", "tcp/write/4K/two-qp/alone", &probesOf(&d.Results[3]).ProbeAlone},
		{"hol-tcp-write-4K-two-qp-loaded", "tcp/write/4K/two-qp/loaded", &probesOf(&d.Results[3]).ProbeLoaded},
		{"latency-tcp-read-4K-rate20000-repeat3", "tcp/read/4K/rate20000/repeat3", d.Results[4].Latency},
		{"latency-tcp-read-4K-rate20000-service-repeat3", "tcp/read/4K/rate20000/service/repeat3",
			d.Results[4].LatencyService},
	}
	if len(names) != len(want) {
		t.Fatalf("names %q, want %d", names, len(want))
	}
	row := regexp.MustCompile(`^ *([0-9.]+) +([0-9.]+) +(\d+) +(inf|[0-9.]+)$`)
	for i, w := range want {
		if names[i] != w.name {
			t.Errorf("file %q, want %q", names[i], w.name)
			continue
		}
		h := must(w.l.Histogram())(t)
		got := readLog(t, must(os.ReadFile(filepath.Join(dir, w.name+".hlog")))(t))
		if len(got) != 1 || got[0].tag != w.tag || !got[0].h.Equals(h) {
			t.Errorf("%s.hlog: %d histograms, want one equal to the recorded with tag %q", w.name, len(got), w.tag)
			continue
		}
		// The log format counts in seconds; the reader gives milliseconds back.
		if start, end := got[0].h.StartTimeMs(), got[0].h.EndTimeMs(); end-start != 2500 {
			t.Errorf("%s.hlog: interval of %d ms, want 2500", w.name, end-start)
		}
		text := string(must(os.ReadFile(filepath.Join(dir, w.name+".hgrm")))(t))
		lines := strings.Split(strings.TrimSpace(text), "\n") // as the plotters read them
		same(t, w.name+".hgrm: heading", []string{"Value", "Percentile", "TotalCount", "1/(1-Percentile)"},
			strings.Fields(lines[0]))
		var last []string
		for _, line := range lines {
			if m := row.FindStringSubmatch(line); m != nil {
				last = m
			}
		}
		most := fmt.Sprintf("%.3f", float64(h.Max())/1000)
		if last == nil || last[1] != most || last[3] != strconv.FormatInt(h.TotalCount(), 10) {
			t.Errorf("%s.hgrm: last row %q, want %s us and %d samples", w.name, last, most, h.TotalCount())
		}
	}
}

func TestHistogramLogGolden(t *testing.T) {
	d := histogramDocument()
	log := histogramLog(t, d)
	if got := readLog(t, log); len(got) != 8 {
		t.Errorf("%d histograms in one log, want 8", len(got))
	}
	// The payload's compression may change with the Go release.
	payload := regexp.MustCompile(`(?m),HIST[A-Za-z0-9+/=]+$`)
	golden(t, "histograms.hlog", payload.ReplaceAll(log, []byte(",HIST…")))
	var b bytes.Buffer
	noError(t, hlog.WritePercentiles(&b, d.Results[0].Latency))
	golden(t, "stalled.hgrm", b.Bytes())
}

// A result without its histogram has no file; a broken one is an error.
func TestHistogramFilesNeedHistograms(t *testing.T) {
	d := goldenDocument()
	names, err := hlog.WriteFiles(t.TempDir(), d)
	if err != nil || len(names) != 0 {
		t.Errorf("names %q, error %v, want neither", names, err)
	}
	d.Results[0].Latency.HDR = "HISTbroken"
	if _, err := hlog.WriteFiles(t.TempDir(), d); err == nil {
		t.Error("a broken histogram is no error")
	}
	if _, err := hlog.WriteFiles(filepath.Join(t.TempDir(), "none"), histogramDocument()); err == nil {
		t.Error("a missing directory is no error")
	}
}

// Points lie one behind another in a viewer of logs, not all at the start of the run.
func TestHistogramLogHasStartsOfPoints(t *testing.T) {
	d := histogramDocument()
	for i := range d.Results {
		d.Results[i].Started = d.Started.Add(time.Duration(10*(i+1)) * time.Second)
	}
	starts := map[string]int64{}
	for _, l := range readLog(t, histogramLog(t, d)) {
		starts[l.tag] = l.h.StartTimeMs() - d.Started.UnixMilli()/1000*1000
	}
	part := d.Started.UnixMilli() % 1000
	if got, other := starts["iwarp(crc__fast)/send/4K"],
		starts["tcp/read/4K/rate20000/repeat3"]; got%100_000-part != 10_000 || other%100_000-part != 50_000 {
		t.Errorf("starts %v, want 10 and 50 s behind the run's", starts)
	}
}
