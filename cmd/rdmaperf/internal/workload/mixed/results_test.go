package mixed

import (
	"bytes"
	"flag"
	"math"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

var update = flag.Bool("update", false, "rewrite the golden file")

var all = reports.Workloads{results}

func latencyAround(n int64, p50 float64) *reports.Latency {
	return &reports.Latency{Count: n, Min: p50 / 2, P50: p50, P90: p50 * 1.2, P99: p50 * 2, P999: p50 * 4,
		P9999: p50 * 8, P99999: p50 * 9, Max: p50 * 10, Mean: p50 * 1.1, StdDev: p50 / 3}
}

// fixed is a run of two stacks with two mixes.
func fixed() *reports.Document {
	d := &reports.Document{Schema: reports.SchemaID, Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Command: []string{"rdmaperf"},
		Environment: reports.Environment{Version: "v0.1.0", Go: "go1.26.8", OS: "linux", Arch: "amd64",
			Kernel: "6.12.9", CPU: "Example CPU", CPUs: 2}}
	for i, stack := range []string{"tcp", "iwarp(crc)"} {
		for _, mix := range []int{70, 100} {
			f := float64(i + 1)
			side := func(part int64, p50 float64) Direction {
				if part == 0 {
					return Direction{Blocks: []BlockCount{{SizeBytes: 4096, Percent: 70},
						{SizeBytes: 65536, Percent: 30}}}
				}
				n := 1000 * part
				return Direction{Operations: n, OperationsPerSecond: float64(n) * f, BytesPerSecond: float64(n) * f *
					22528, Latency: latencyAround(n, p50*f),
					Blocks: []BlockCount{{SizeBytes: 4096, Percent: 70, Operations: 700 * part},
						{SizeBytes: 65536, Percent: 30, Operations: 300 * part}}}
			}
			m := &Mixed{ReadPercent: mix, AchievedReadPercent: float64(mix), Blocks: "4K/70:64K/30",
				SpanBytes: 16 << 20, WriteDone: doneByCompletion,
				Reads: side(int64(mix), 20_000), Writes: side(int64(hundred-mix), 3_000)}
			d.Results = append(d.Results, reports.Result{Stack: stack, Transport: stack, Label: reports.LabelSoft,
				Workload: Name, Op: op, SizeBytes: 65536, Depth: 16, QPs: 1, Threads: 1,
				Polling: reports.PollingBusy, MeasuredBy: "client", DurationNs: 1e9, Operations: 100_000,
				Verified: true, Latency: latencyAround(100_000, 15_000*f),
				Throughput: reports.NewThroughput(100_000*22528, 100_000, time.Second), Detail: m})
		}
	}
	all.Describe(d.Results)
	return d
}

func formatted(t *testing.T, d *reports.Document, format string, o render.Options) string {
	t.Helper()
	f := render.Find(format, func(*render.Format) bool { return true })
	var b bytes.Buffer
	var err error
	if f.Write != nil {
		err = f.Write(&b, d, o)
	} else {
		err = f.Pages(&b, []*reports.Document{d}, o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The document follows the schema, and all formats need only it.
func TestMixedIsWrittenAndRead(t *testing.T) {
	raw := formatted(t, fixed(), "json", render.Options{})
	reporttest.Validate(t, []byte(raw))
	again, err := reports.ReadDocument(strings.NewReader(raw), all)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"json", "text", "csv", "bench", "html", "markdown"} {
		if diff := cmp.Diff(formatted(t, fixed(), format, render.Options{}),
			formatted(t, again, format, render.Options{})); diff != "" {
			t.Errorf("%s from the file (-memory +file):\n%s", format, diff)
		}
	}
}

func TestMixedGolden(t *testing.T) {
	got := formatted(t, fixed(), "text", render.Options{Width: 80}) + "\n" + formatted(t, fixed(), "markdown",
		render.Options{})
	const file = "testdata/golden.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got); rewrite it with -update and read the diff:\n%s", diff)
	}
	for l := range strings.Lines(got[:strings.Index(got, "###")]) {
		if n := len([]rune(strings.TrimSuffix(l, "\n"))); n > 80 {
			t.Errorf("a line of %d columns: %q", n, l)
		}
	}
}

// Both directions have figures, bars, curves against the mix, columns and thresholds.
func TestMixedShowsBothDirections(t *testing.T) {
	d := fixed()
	p := page.New([]*reports.Document{d}, page.Options{})
	titles := map[string]bool{}
	for _, s := range p.Sections {
		for _, f := range s.Figures {
			titles[f.Title] = true
		}
	}
	for _, want := range []string{"Reads and writes randrw: reads rate by read percent",
		"Reads and writes randrw: writes p50"} {
		if !titles[want] {
			t.Errorf("no chart %q of %v", want, titles)
		}
	}
	for _, want := range []string{"read_percent=70 blocks=4K/70:64K/30", ",reads.p99,time,ns,",
		",writes.rate,rate,1/s,", ",reads.size_65536,count,"} {
		if csv := formatted(t, d, "csv", render.Options{}); !strings.Contains(csv, want) {
			t.Errorf("no %q in %.3000s", want, csv)
		}
	}
	for s, missed := range map[string]bool{"reads.p99>39us": true, "reads.p99>41us": false, "writes.rate<30001": true,
		"writes.bw<1MB/s": false} {
		th, err := reports.ParseThreshold(s, all)
		if err != nil {
			t.Fatal(err)
		}
		one := &reports.Document{Results: d.Results[:1]}
		if got, err := reports.CheckThresholds(one, []reports.Threshold{th}); err != nil || (len(got) > 0) != missed {
			t.Errorf("%s: %v, want missed %v", s, got, missed)
		}
	}
}

// Foreign or broken figures neither print what is no number nor move the cursor.
func TestMixedPrintsNoNonsense(t *testing.T) {
	d := fixed()
	m := Of(&d.Results[0])
	m.Blocks = "4K\x1b[2J\u202e"
	m.Reads.OperationsPerSecond, m.Reads.Latency.P99, m.Writes.BytesPerSecond = math.NaN(), math.Inf(1), math.NaN()
	m.Reads.Blocks, m.Writes.Latency, m.Writes.Operations = nil, nil, 0
	all.Describe(d.Results)
	for _, format := range []string{"text", "csv", "bench", "html", "markdown"} {
		out := formatted(t, d, format, render.Options{})
		sane := formatted(t, fixed(), format, render.Options{}) // a page's script has such words
		for _, word := range []string{"NaN", "Inf"} {
			if strings.Count(out, word) != strings.Count(sane, word) {
				t.Errorf("%s prints %s", format, word)
			}
		}
		for l := range strings.Lines(out) {
			if strings.ContainsFunc(strings.TrimRight(l, "\r\n"),
				func(r rune) bool { return unicode.IsControl(r) && r != '\t' || r == '\u202e' }) {
				t.Errorf("%s: %q", format, l)
				break
			}
		}
	}
}
