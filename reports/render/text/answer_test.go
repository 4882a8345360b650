package text_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/render/text"
)

// answered is a document of stacks that were each measured at all columns, with the most that an answer says.
func answered(stacks []string, columns []reports.AnswerColumn, values ...float64) *reports.Document {
	a := &reports.Answer{Columns: columns, Comparisons: 21, Undecided: 4, Confidence: 0.9976, Reliance: []string{
		"Threads waited for a CPU in 20 of 58 measurements: differences under 1.4x are not shown here",
		"lite+iwarp was measured within one process",
		"Of 1,200,000 messages 31,000 were compared byte by byte"}}
	d := &reports.Document{Answer: a, Environment: reports.Environment{CPUs: 2,
		CPU: "AMD EPYC 9B45 128-Core Processor", Hypervisor: true}}
	for i, s := range stacks {
		row := reports.AnswerRow{Stack: s}
		for k := range columns {
			v := values[k] * (1 + float64(i)/3)
			row.Cells = append(row.Cells, &reports.AnswerCell{Value: v, Within: &[2]float64{v * 0.8, v * 1.3}, Rounds: 24})
		}
		a.Rows = append(a.Rows, row)
		d.Results = append(d.Results, reports.Result{Stack: s, Verified: true, Polling: "busy", Workload: "latency"})
	}
	for i := range 8 {
		a.Conclusions = append(a.Conclusions, reports.Conclusion{
			Topic: []string{reports.TopicSmall, reports.TopicBulk, reports.TopicBoth}[i/3], Stack: stacks[0], Base: stacks[0],
			Text: fmt.Sprintf("%s answers a probe behind 1 MiB writes 11%dx sooner than iwarp (90 to 130x), at 0.95x of "+
				"the bulk's rate", stacks[i%len(stacks)], i)})
	}
	return d
}

var sevenStacks = []string{"tcp", "iwarp", "sched+iwarp", "lite+iwarp", "grpc(tcp)", "grpc(dropin)+iwarp",
	"grpc(fused)+iwarp"}

var fourColumns = []reports.AnswerColumn{
	{Title: "half round trip", Point: "64 B send", Figure: "p50", Unit: "ns"},
	{Title: "call round trip", Point: "64 B call", Figure: "p50", Unit: "ns"},
	{Title: "bulk rate", Point: "1 MiB write", Figure: "bw", Unit: "B/s", Better: reports.More},
	{Title: "probe beside bulk", Point: "64 B read", Figure: "loaded.p50", Unit: "ns"}}

func printed(t *testing.T, d *reports.Document, o text.Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := text.Write(&b, d, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Seven stacks in four columns, with the most that an answer says, fit on a screen.
func TestAnAnswerFitsOnAScreen(t *testing.T) {
	d := answered(sevenStacks, fourColumns, 5590, 19_000, 6.9e9, 180_000)
	d.Answer.Rows[0].Cells[3].Value, *d.Answer.Rows[0].Cells[3].Within = 14_098_000, [2]float64{12_800_000, 32_455_000}
	d.Answer.Rows[4].Cells[0] = nil
	d.Results[3].Disturbance = &reports.Disturbance{Verdict: reports.VerdictImpossible}
	d.Results[4].Verified, d.Results[5].Errors = false, 7
	got := printed(t, d, text.Options{})
	t.Log("\n" + got)
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) > 40 {
		t.Errorf("%d lines", len(lines))
	}
	for _, l := range lines {
		if utf8.RuneCountInString(l) > 80 {
			t.Errorf("%q is longer than 80 columns", l)
		}
	}
}

// Rows of one stack's variants are one stack.
func TestVariantsAreNoStacksOfTheirOwn(t *testing.T) {
	d := answered([]string{"tcp, same-qp", "tcp, two-qp"}, fourColumns[:1], 5590)
	for i := range d.Results {
		d.Results[i].Stack = "tcp"
	}
	if got := printed(t, d, text.Options{}); !strings.Contains(got, ", virtual, 1 stack, 24 rounds, ") {
		t.Error(got)
	}
}

// Few stacks at many points have a row for each point.
func TestManyPointsOfFewStacksAreRows(t *testing.T) {
	var columns []reports.AnswerColumn
	var values []float64
	for i := range 12 {
		columns = append(columns, reports.AnswerColumn{Title: "half round trip", Point: fmt.Sprintf("%d B send", 64<<i),
			Unit: "ns"})
		values = append(values, float64(5000+100*i))
	}
	got := printed(t, answered([]string{"tcp", "iwarp"}, columns, values...), text.Options{})
	if !strings.Contains(got, "\n64 B send, half round trip [us]      5.00 (4-6.5)      6.67 (5.33-8.67)\n") ||
		strings.Count(got, "\n") > 60 {
		t.Error(got)
	}
}

// What is too wide for one table is several, each with all stacks.
func TestAWideMatrixIsInBlocks(t *testing.T) {
	columns := append(append([]reports.AnswerColumn{}, fourColumns...), fourColumns...)
	got := printed(t, answered(sevenStacks, columns, 5590, 19_000, 6.9e9, 180_000, 5590, 19_000, 6.9e9, 180_000),
		text.Options{})
	if n := strings.Count(got, "\nsched+iwarp "); n < 2 {
		t.Errorf("%d blocks:\n%s", n, got)
	}
	for l := range strings.Lines(got) {
		if utf8.RuneCountInString(l) > 81 {
			t.Errorf("%q is longer than 80 columns", l)
		}
	}
}

// A document of one stack has its figures without what only details need, and no sentence.
func TestOneStackHasItsFigures(t *testing.T) {
	d := answered([]string{"iwarp"}, fourColumns[:1], 5590)
	d.Answer.Conclusions, d.Answer.Comparisons = nil, 0
	rec := reports.NewRecorder()
	for ns := range int64(2000) {
		rec.Record(5000 + ns)
	}
	l := rec.Snapshot()
	d.Results = []reports.Result{{Stack: "iwarp", Label: reports.LabelSoft, Workload: "latency", Op: "send",
		SizeBytes: 64, Depth: 1, QPs: 1, Operations: 2000, DurationNs: 1e9, Verified: true, Latency: &l,
		LatencyCorrected: &l, CPU: &reports.CPU{ClientSeconds: 1}}}
	d.Error = &reports.RunError{Operation: "read size 1M", Message: "peer closed the connection", ExitCode: 5}
	got := printed(t, d, text.Options{})
	for _, want := range []string{"#iterations", "p99.9", "iwarp", "5.59 (4.47-7.27)",
		"run ended early: read size 1M: peer closed the connection (exit code 5)"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	for _, not := range []string{"coordinated omission", "CPU client"} {
		if details := printed(t, d, text.Options{Details: true}); strings.Contains(got, not) ||
			!strings.Contains(details, not) {
			t.Errorf("%q in\n%s\nor not in\n%s", not, got, details)
		}
	}
}
