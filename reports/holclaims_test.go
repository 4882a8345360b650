package reports_test

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	holkind "github.com/rdmaperf/rdmaperf/reports/kinds/hol"
	starvationkind "github.com/rdmaperf/rdmaperf/reports/kinds/starvation"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
)

// holRun is one head-of-line point whose probes beside the bulk take ns.
func holRun(stack, op, arm string, bulk int64, ns float64) reports.Result {
	return reports.Result{Stack: stack, Label: reports.LabelSoft, Workload: "hol", Op: op, SizeBytes: bulk, Depth: 16, QPs: 1, DurationNs: 1e9,
		Operations: 1000, Verified: true, CPU: &reports.CPU{ClientSeconds: 0.5, ServerSeconds: 0.25}, Kind: kind("hol"),
		Detail: &holkind.HOL{Arm: arm, BulkSizeBytes: bulk, ProbeSizeBytes: 64, ProbeGapNs: 500_000, Probes: 2000, ProbeAlone: *latency(2000, 15_500), ProbeLoaded: *latency(2000, ns),
			BulkAloneBytesPerSecond: 2.5e9, BulkLoadedBytesPerSecond: 2.4e9}}
}

// armLines are the rows of the table of arms.
func armLines(t *testing.T, d *reports.Document) []string {
	t.Helper()
	_, table, ok := strings.Cut(string(text(t, d, textformat.Options{Width: 200})), "arms side by side")
	if !ok {
		t.Fatal("no arms side by side")
	}
	var rows []string
	for _, l := range strings.Split(table, "\n") {
		if regexp.MustCompile(`^\d+ +[a-z]`).MatchString(l) {
			rows = append(rows, strings.Join(strings.Fields(l), " "))
		}
	}
	return rows
}

// A gain is against the bare stack by the same operation. Where that was not measured, or
// one of both is saturated, there is none.
func TestGainsStandOnWhatWasMeasured(t *testing.T) {
	d := goldenDocument()
	const sched = "sched(strict,slice=auto,window=auto)+iwarp(crc)"
	d.Error, d.Results = nil, []reports.Result{
		holRun(sched, "write", holkind.ArmSameQP, 1<<20, 1e5), holRun(sched, "write", holkind.ArmTwoQP, 1<<20, 2e5),
		holRun("grpc(fused)+sched(strict)+iwarp(crc)", "call", holkind.ArmSameQP, 1<<20, 1e5), holRun("grpc(fused)+iwarp(crc)", "call", holkind.ArmSameQP, 1<<20, 4e5)}
	rows := armLines(t, d)
	if len(rows) != 4 || strings.Count(rows[0], " - -") != 1 || strings.Count(rows[1], " - -") != 1 || !strings.Contains(rows[2], " 4.00x 4.00x ") || !strings.Contains(rows[3], " 1.00x 1.00x ") {
		t.Errorf("rows %q: want no gain of sched without the bare stack, and 4.00x of calls", rows)
	}
	d.Results = append(d.Results, holRun("iwarp(crc)", "write", holkind.ArmSameQP, 1<<20, 1e6))
	if rows = armLines(t, d); !strings.Contains(rows[0], " 10.00x 10.00x ") || !strings.Contains(rows[0], " write ") || !strings.Contains(rows[2], " call ") {
		t.Errorf("rows %q: want 10.00x of sched, and what carries the bulk", rows)
	}
	if !strings.Contains(rows[0], " 0.715 250.0") { // 0.75 s for 1000 MiB, and for 3000 messages and probes
		t.Errorf("row %q lacks the CPU of a gigabyte and of an operation", rows[0])
	}
	holkind.Of(&d.Results[4]).LoadedLoop = &reports.OpenLoop{Due: 2000, Sent: 100, Completed: 100, Saturated: true}
	if rows = armLines(t, d); strings.Contains(rows[0], "x") || !strings.Contains(rows[4], "same-qp, saturated") {
		t.Errorf("rows %q: want no gain against a saturated point", rows)
	}
}

// One figure has the bulk size on the x axis, and a line for the median and the p99 of every
// stack in every arm; what is saturated is not on it.
func TestFigureByBulkSize(t *testing.T) {
	d := goldenDocument()
	d.Error, d.Results = nil, nil
	for i, bulk := range []int64{64 << 10, 1 << 20, 16 << 20} {
		for _, arm := range []string{holkind.ArmSameQP, holkind.ArmTwoQP} {
			d.Results = append(d.Results, holRun("iwarp(crc)", "write", arm, bulk, 1e5*float64(1+9*i)), holRun("sched(strict)+iwarp(crc)", "write", arm, bulk, 9e4))
		}
	}
	page := func() string {
		var out bytes.Buffer
		if err := htmlformat.Write(&out, []*reports.Document{d}, pages.Options{}); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	got := page()
	for _, want := range []string{"Probe latency beside bulk, by bulk size", "Bulk size", "iwarp(crc), same-qp, p50", "iwarp(crc), two-qp, p99", "sched(strict)+iwarp(crc), same-qp, p99",
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
	holkind.Of(&d.Results[8]).LoadedLoop = &reports.OpenLoop{Due: 2000, Sent: 100, Completed: 100, Saturated: true}
	if n := points(page()); n >= points(got) {
		t.Errorf("%d points of a saturated stack at 16 MiB, %d before", n, points(got))
	}
}

// The printed shares of two classes add up to the whole at any load.
func TestSharesAddUp(t *testing.T) {
	d := starvationDocument()
	odd := starvationkind.Of(&d.Results[0])
	odd.High.BytesPerSecond, odd.Low.BytesPerSecond = 1, 2 // thirds
	out := string(text(t, d, textformat.Options{Width: 200}))
	rows := 0
	for _, l := range strings.Split(out, "\n") {
		f := strings.Fields(l)
		if len(f) != 9 || !regexp.MustCompile(`^\d+$`).MatchString(f[0]) {
			continue
		}
		rows++
		a, e1 := strconv.ParseFloat(f[5], 64)
		b, e2 := strconv.ParseFloat(f[6], 64)
		if e1 != nil || e2 != nil || math.Abs(a+b-100) > 1e-9 {
			t.Errorf("%q: shares %v and %v", l, a, b)
		}
	}
	if rows == 0 {
		t.Errorf("no rows in:\n%s", out)
	}
}
