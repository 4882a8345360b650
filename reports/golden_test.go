package reports_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	benchformat "github.com/rdmaperf/rdmaperf/reports/render/bench"
	"github.com/rdmaperf/rdmaperf/reports/render/latex"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		noError(t, err)
		return v
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// same fails where got is not want.
func same(t testing.TB, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// contains fails where a text lacks one of the words, lacks where it has one.
func contains(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%.2000s", w, text)
		}
	}
}

func lacks(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if at := strings.Index(text, w); at >= 0 {
			t.Errorf("%q in\n…%.2000s", w, text[max(at-200, 0):])
		}
	}
}

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file in testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		noError(t, os.WriteFile(path, got, 0o644))
	}
	want := must(os.ReadFile(path))(t)
	same(t, name+"; rewrite it with -update and read the diff", string(want), string(got))
}

// latency has no histogram, whose compression may change with the Go release.
func latency(count int64, p50 float64) *reports.Latency {
	l := &reports.Latency{
		Count: count, Min: p50 * 0.8, P50: p50, P90: p50 * 1.1, P99: p50 * 1.5, P999: p50 * 4, P9999: p50 * 20,
		P99999: p50 * 90, Max: p50 * 100, Mean: p50 * 1.05, StdDev: p50 * 0.3,
	}
	for _, p := range l.Percentiles() {
		if p.TooFew {
			l.TooFew = append(l.TooFew, p.Name)
		}
	}
	return l
}

// emptyRun is that of goldenDocument without its results.
func emptyRun() *reports.Document {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	return d
}

// point is a result of one second by itself, with what all have.
func point(stack, workload, op string, size int64) reports.Result {
	return reports.Result{Stack: stack, Label: reports.LabelSoft, Workload: workload, Op: op, SizeBytes: size, Depth: 1,
		QPs: 1, Polling: reports.PollingBusy, MeasuredBy: "client", DurationNs: 1e9, Verified: true}
}

// goldenDocument is a fixed run: two transports beside each other, all sorts of remarks, and an early end.
func goldenDocument() *reports.Document {
	point := func(stack, workload, op string, size int64) reports.Result {
		r := point(stack, workload, op, size)
		r.Transport, r.Threads, r.DurationNs, r.Operations = strings.TrimSuffix(stack, "(crc)"), 1, 3e9, 1_200_000
		return r
	}
	ping := func(stack, op string, size, count int64, p50 float64) reports.Result {
		r := point(stack, "latency", op, size)
		r.RoundTrip, r.Operations = reports.RoundTripHalf, count
		if op == "read" {
			r.RoundTrip = reports.RoundTripFull
		}
		r.Latency = latency(count, p50)
		r.Throughput = reports.NewThroughput(size*count, count, 3*time.Second)
		return r
	}
	stream := func(stack string, size, operations int64) reports.Result {
		r := point(stack, "throughput", "write", size)
		r.Depth, r.QPs, r.Threads, r.Operations = 16, 4, 2, operations
		r.Throughput = reports.NewThroughput(size*operations, operations, 3*time.Second)
		return r
	}
	d := &reports.Document{
		Schema:  reports.SchemaID,
		Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Command: []string{"rdmaperf", "run", "--transport", "tcp,iwarp"},
		Environment: reports.Environment{
			Version: "v0.1.0", Go: "go1.26.8", OS: "linux", Arch: "amd64", Kernel: "6.12.9",
			CPU: "Example CPU @ 2.30GHz", CPUs: 2, Hypervisor: true, Governors: []string{"performance"}, NUMANodes: 1,
			Clock: "tsc", GOMAXPROCS: 2, GOGC: "100",
		},
		Error: &reports.RunError{Operation: "read size 1M", Message: "peer closed the connection",
			Hint: "look at the log of rdmaperf serve", ExitCode: 5},
		Results: []reports.Result{
			ping("tcp", "send", 64, 600_000, 3900),
			ping("tcp", "send", 4096, 2_000_000, 5100),
			ping("iwarp(crc)", "send", 64, 500_000, 4300),
			ping("iwarp(crc)", "send", 4096, 15, 6200),
			ping("iwarp(crc)", "read", 1<<20, 900, 410_000),
			stream("tcp", 1<<20, 18_000),
			stream("iwarp(crc)", 64, 9_000_000),
			stream("iwarp(crc)", 1<<20, 15_000),
			point("iwarp(crc)", "registration", "", 65536),
			ping("mem", "send", 64, 1_000_000, 350),
		},
	}
	corrected := latency(502_172, 4300)
	corrected.P999, corrected.P9999, corrected.ExpectedIntervalNs = 4_990_000, 4_999_000, 4300
	d.Results[2].LatencyCorrected = corrected
	d.Results[2].Latency.Clamped = 1
	d.Results[2].GC = &reports.GC{ClientCollections: 2, ClientAllocations: 14, ServerAllocations: 9}
	d.Results[2].CPU, d.Results[3].CPU = &reports.CPU{ClientSeconds: 2.99, ServerSeconds: 2.5},
		&reports.CPU{ClientSeconds: 3, ServerSeconds: 3.1}
	d.Results[7].Errors = 3
	d.Results[9].Label, d.Results[9].Verified = reports.LabelMem, false
	return of(d)
}

func render(t *testing.T, write func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	noError(t, write(&b))
	return b.Bytes()
}

func text(t *testing.T, d *reports.Document, o textformat.Options) []byte {
	t.Helper()
	return render(t, func(w io.Writer) error { return textformat.Write(w, d, o) })
}

func bench(t *testing.T, d *reports.Document) []byte {
	t.Helper()
	return render(t, func(w io.Writer) error { return benchformat.Write(w, d) })
}

func TestGolden(t *testing.T) {
	d := goldenDocument()
	reporttest.Validate(t, encode(t, d))
	golden(t, "document.json", encode(t, d))
	golden(t, "text.txt", text(t, d, textformat.Options{}))
	golden(t, "text-gbits-color-wide.txt", text(t, d, textformat.Options{Gbits: true, Color: true, Width: 160}))
	golden(t, "bench.txt", bench(t, d))
	golden(t, "../render/latex/testdata/tables.tex", render(t, func(w io.Writer) error {
		return latex.Write(w, []*reports.Document{d}, pages.Options{})
	}))
	golden(t, "text-empty.txt", text(t, &reports.Document{Environment: d.Environment, Error: d.Error},
		textformat.Options{}))
}

func TestTextStaysWithinItsWidth(t *testing.T) {
	d := goldenDocument()
	d.Results[0].Latency.Max = 60e9 // the longest latency the recorder tells apart
	for width, limit := range map[int]int{0: 100, 100: 100, 120: 120, 160: 160} {
		for line := range strings.Lines(string(text(t, d, textformat.Options{Width: width}))) {
			line = strings.TrimSuffix(line, "\n")
			if n := utf8.RuneCountInString(line); n > limit {
				t.Errorf("width %d: a line of %d columns: %q", width, n, line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("width %d: spaces at the end of %q", width, line)
			}
		}
	}
}

func TestSideBySideComparesOnlyLikeWithLike(t *testing.T) {
	all := goldenDocument().Results
	deep := all[2]
	deep.Depth = 8
	for what, results := range map[string][]reports.Result{"a single stack": all[:2], "two depths": {all[0], deep}} {
		d := goldenDocument()
		d.Results = results
		lacks(t, what+string(text(t, d, textformat.Options{})), "side by side")
	}
}

func TestSideBySideTakesTheMedianOfRepeats(t *testing.T) {
	d := goldenDocument()
	base, other := d.Results[0], d.Results[2]
	d.Results = []reports.Result{base}
	for _, p50 := range []float64{3900 * 9, 3900 * 2, 3900 * 1} {
		r := other
		r.Latency = latency(500_000, p50)
		d.Results = append(d.Results, r)
	}
	contains(t, string(text(t, d, textformat.Options{})), "2.00x", "median of repeats")
}

// A benchmark line without iterations is none, but people want to see the row.
func TestResultWithoutOperations(t *testing.T) {
	d := goldenDocument()
	r := d.Results[0]
	r.Operations, r.Latency, r.Errors = 0, nil, 7
	r.Throughput = reports.NewThroughput(0, 0, time.Second)
	d.Results = []reports.Result{r}
	lacks(t, string(bench(t, d)), "Benchmark")
	contains(t, string(text(t, d, textformat.Options{})), "bandwidth", "64 bytes: 7 failed operations")
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

// fuzzDocuments are the results of documents, each in one of its own, which a fuzzer executes fast. Distributions are
// compressed, so that anything bent in them is only refused.
func fuzzDocuments(f *testing.F, docs ...*reports.Document) (all [][]byte) {
	f.Helper()
	seen := map[string]bool{}
	for _, d := range docs {
		for _, r := range append(d.Results, reports.Result{}) {
			one := &reports.Document{Started: d.Started}
			if r.Latency != nil {
				l := *r.Latency
				l.HDR, r.Latency = "", &l
			}
			r.LatencyCorrected, r.Series, r.RawSamples = nil, nil, nil
			one.Results = []reports.Result{r}
			var b bytes.Buffer
			if err := one.WriteJSON(&b); err != nil {
				f.Fatal(err)
			}
			if key := r.Workload + "/" + r.Op; !seen[key] && b.Len() < 4<<10 {
				seen[key] = true
				all = append(all, b.Bytes())
			}
		}
	}
	return all
}

// Whatever can be read can be written and printed.
func FuzzReadDocument(f *testing.F) {
	for _, b := range fuzzDocuments(f, goldenDocument()) {
		f.Add(b)
	}
	f.Add([]byte(`{"schema":"rdmaperf/v1","started":"9999-12-31T23:59:59Z","results":[{"operations":1,"latency":{"p50":1.7e308,"p99":-1},"throughput":null},{}]}`))
	f.Add([]byte(`{"schema":"rdmaperf/v1","results":[{"latency":{"hdr":"AAAA"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := reports.ReadDocument(bytes.NewReader(b), workloads)
		if err != nil {
			return
		}
		again, err := reports.ReadDocument(bytes.NewReader(encode(t, d)), workloads)
		if err != nil {
			t.Fatalf("read, written and not readable: %v", err)
		}
		for name, outs := range map[string][2][]byte{
			"text":  {text(t, d, textformat.Options{}), text(t, again, textformat.Options{})},
			"bench": {bench(t, d), bench(t, again)},
		} {
			if !bytes.Equal(outs[0], outs[1]) {
				t.Errorf("%s changes when the document is written and read:\n%s\n%s", name, outs[0], outs[1])
			}
			if s := string(outs[0]); strings.Contains(s, "NaN") && !bytes.Contains(b, []byte("NaN")) ||
				!utf8.ValidString(s) {
				t.Errorf("%s holds NaN or bytes that are no text:\n%q", name, s)
			}
		}
	})
}
