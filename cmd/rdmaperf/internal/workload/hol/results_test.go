package hol

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render/html"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
)

var workloads = reports.Workloads{results}

func distribution(count int64, p50 float64) *reports.Latency {
	return &reports.Latency{Count: count, Min: 0.8 * p50, P50: p50, P90: 1.1 * p50, P99: 1.5 * p50, P999: 4 * p50,
		P9999: 20 * p50, P99999: 90 * p50, Max: 100 * p50, Mean: 1.05 * p50, StdDev: 0.3 * p50}
}

func printed(t *testing.T, d *reports.Document) string {
	t.Helper()
	workloads.Describe(d.Results)
	var b bytes.Buffer
	if err := text.Write(&b, d, text.Options{Width: 200, Own: []text.OwnTables{Tables}}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// holRun is one head-of-line point whose probes under load take ns.
func holRun(stack, op, arm string, bulk int64, ns float64) reports.Result {
	return reports.Result{Stack: stack, Label: reports.LabelSoft, Workload: "hol", Op: op, SizeBytes: bulk, Depth: 16,
		QPs: 1, DurationNs: 1e9,
		Operations: 1000, Verified: true, CPU: &reports.CPU{ClientSeconds: 0.5, ServerSeconds: 0.25},
		Detail: &HOL{Arm: arm, BulkSizeBytes: bulk, ProbeSizeBytes: 64, ProbeGapNs: 500_000, Probes: 2000,
			ProbeAlone: *distribution(2000, 15_500), ProbeLoaded: *distribution(2000, ns),
			BulkAloneBytesPerSecond: 2.5e9, BulkLoadedBytesPerSecond: 2.4e9}}
}

func armLines(t *testing.T, d *reports.Document) []string {
	t.Helper()
	_, table, ok := strings.Cut(printed(t, d), "variants: hol")
	if !ok {
		t.Fatal("no variants")
	}
	var rows []string
	for l := range strings.Lines(table) {
		if regexp.MustCompile(`^\d+ +[a-z]`).MatchString(l) {
			rows = append(rows, strings.Join(strings.Fields(l), " "))
		}
	}
	return rows
}

// A gain is against the bare stack by the same operation, and none where that is missing or one is saturated.
func TestGainsStandOnWhatWasMeasured(t *testing.T) {
	d := &reports.Document{}
	const sched = "sched(strict,slice=auto,window=auto)+iwarp(crc)"
	d.Results = []reports.Result{
		holRun(sched, "write", SameQP, 1<<20, 1e5), holRun(sched, "write", TwoQP, 1<<20, 2e5),
		holRun("grpc(fused)+sched(strict)+iwarp(crc)", "call", SameQP, 1<<20, 1e5),
		holRun("grpc(fused)+iwarp(crc)", "call", SameQP, 1<<20, 4e5)}
	rows := armLines(t, d)
	if len(rows) != 4 || strings.Count(rows[0], " - -") != 1 || strings.Count(rows[1], " - -") != 1 ||
		!strings.Contains(rows[2], " 4.00x 4.00x ") || !strings.Contains(rows[3], " 1.00x 1.00x ") {
		t.Errorf("rows %q: want no gain of sched without the bare stack, and 4.00x of calls", rows)
	}
	d.Results = append(d.Results, holRun("iwarp(crc)", "write", SameQP, 1<<20, 1e6))
	if rows = armLines(t, d); !strings.Contains(rows[0], " 10.00x 10.00x ") || !strings.Contains(rows[0], " write ") ||
		!strings.Contains(rows[2], " call ") {
		t.Errorf("rows %q: want 10.00x of sched, and what carries the bulk", rows)
	}
	if !strings.Contains(rows[0], " 0.715 250.0") { // 0.75 s for 1000 MiB, and for 3000 messages and probes
		t.Errorf("row %q lacks the CPU of a gigabyte and of an operation", rows[0])
	}
	Of(&d.Results[4]).LoadedLoop = &reports.OpenLoop{Due: 2000, Sent: 100, Completed: 100, Saturated: true}
	if rows = armLines(t, d); strings.Contains(rows[0], "x") || !strings.Contains(rows[4], "same-qp, saturated") {
		t.Errorf("rows %q: want no gain against a saturated point", rows)
	}
}

// One figure by bulk size has a line for p50 and p99 of every stack in every arm; saturated ones are not on it.
func TestFigureByBulkSize(t *testing.T) {
	d := &reports.Document{}
	for i, bulk := range []int64{64 << 10, 1 << 20, 16 << 20} {
		for _, arm := range []string{SameQP, TwoQP} {
			d.Results = append(d.Results, holRun("iwarp(crc)", "write", arm, bulk, 1e5*float64(1+9*i)),
				holRun("sched(strict)+iwarp(crc)", "write", arm, bulk, 9e4))
		}
	}
	drawn := func() string {
		var out bytes.Buffer
		workloads.Describe(d.Results)
		if err := html.Write(&out, []*reports.Document{d},
			page.Options{Own: map[string][]page.OwnSection{"hol": {Section}}}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	got := drawn()
	for _, want := range []string{"Probe latency under load, by bulk size", "Bulk size", "iwarp(crc), same-qp, p50",
		"iwarp(crc), two-qp, p99", "sched(strict)+iwarp(crc), same-qp, p99",
		"CPU for a gigabyte of bulk, by bulk size", "Probe latency, bulk of 1 MiB", "16 MiB"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(got, "<h3>Probe latency, bulk of 1 MiB"); n > 1 {
		t.Errorf("%d figures of one bulk size, want all arms in one", n)
	}
	points := func(page string) int { return strings.Count(page, "iwarp(crc), same-qp, p50\n16 MiB") }
	if points(got) == 0 {
		t.Fatal("no point at 16 MiB")
	}
	Of(&d.Results[8]).LoadedLoop = &reports.OpenLoop{Due: 2000, Sent: 100, Completed: 100, Saturated: true}
	if n := points(drawn()); n >= points(got) {
		t.Errorf("%d points of a saturated stack at 16 MiB, %d before", n, points(got))
	}
}

func TestProbesFasterBesideBulkAreImpossible(t *testing.T) {
	for _, c := range []struct {
		alone, loaded float64
		want          string
	}{{1000, 5000, ""}, {1000, 950, ""}, {178_000, 20_000, "probes were faster under load than alone"}} {
		h := &HOL{ProbeAlone: *distribution(1000, c.alone), ProbeLoaded: *distribution(1000, c.loaded)}
		if got := h.contradiction(); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%v alone, %v loaded: %q, want %q", c.alone, c.loaded, got, c.want)
		}
	}
}
