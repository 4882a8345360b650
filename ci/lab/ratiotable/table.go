package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Targets of the ratio rdmaperf/perftest.
const (
	latencyTarget = 1.03 // at most, of the p50 of 64-byte send, write and read
	rateTarget    = 1.00 // at least, of message rate and bandwidth
)

// hasTarget says whether the ratio of a probe is judged.
func (p probe) hasTarget() bool {
	switch p.test {
	case "send_lat", "write_lat", "read_lat":
		return p.size == 64
	}
	return !p.latency()
}

// table is the JSON document and the source of the text.
type table struct {
	Schema      string              `json:"schema"`
	Environment reports.Environment `json:"environment"`
	Lines       []line              `json:"lines"`
	Failures    []string            `json:"failures,omitempty"`
}

// line is one probe. Ratios are taken inside each repeat; Ratio is their median, and
// with a certainty of 95 % it lies from Low to High. Perftest and Rdmaperf are the best
// of the repeats, Best is the ratio of those.
type line struct {
	Device    string  `json:"device"`
	Test      string  `json:"test"`
	SizeBytes int64   `json:"size_bytes"`
	Polling   string  `json:"polling"` // rdmaperf's; perftest's is busy
	Unit      string  `json:"unit"`    // ns or op/s
	Perftest  float64 `json:"perftest"`
	Rdmaperf  float64 `json:"rdmaperf"`
	// Of latencies: the mean time from post to post, medians over the repeats.
	PerftestPeriod float64         `json:"perftest_period_ns,omitempty"`
	RdmaperfPeriod float64         `json:"rdmaperf_period_ns,omitempty"`
	Ratio          float64         `json:"ratio"`
	Low            float64         `json:"ratio_low"`
	High           float64         `json:"ratio_high"`
	Ratios         []float64       `json:"ratios"`
	Best           float64         `json:"ratio_of_best"`
	Target         string          `json:"target,omitempty"`
	Verdict        targets.Verdict `json:"verdict,omitempty"`
	last           int             // the highest number of a repeat
}

// build computes the table. Without judge no line has a target; what was polled
// adaptively, which perftest cannot, has none either.
func build(r *raw, judge bool) *table {
	t := &table{Schema: "rdmaperf-ratios/v3", Lines: []line{}, Failures: r.failures}
	for p, tools := range r.values {
		if len(tools[busyTool]) > 0 || len(tools[adaptiveTool]) == 0 {
			l := newLine(r, p, busyTool, reports.PollingBusy)
			l.judge(judge && p.hasTarget(), p.latency())
			t.Lines = append(t.Lines, l)
		}
		if len(tools[adaptiveTool]) > 0 {
			t.Lines = append(t.Lines, newLine(r, p, adaptiveTool, reports.PollingAdaptive))
		}
	}
	slices.SortFunc(t.Lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(order(a.Test), order(b.Test)), cmp.Compare(a.Test, b.Test), cmp.Compare(a.SizeBytes, b.SizeBytes), -cmp.Compare(a.Polling, b.Polling))
	})
	return t
}

// newLine compares what one tool measured of a probe with perftest's.
func newLine(r *raw, p probe, tool, polling string) line {
	tools := r.values[p]
	l := line{Device: p.device, Test: p.test, SizeBytes: p.size, Polling: polling, Unit: "op/s", Ratios: []float64{}}
	if p.latency() {
		l.Unit = "ns"
	}
	var theirs, ours []float64
	for n, x := range tools[perftestTool] {
		if y, both := tools[tool][n]; both {
			theirs, ours, l.Ratios, l.last = append(theirs, x), append(ours, y), append(l.Ratios, y/x), max(l.last, n)
		}
	}
	slices.Sort(l.Ratios)
	l.Ratio = targets.Median(l.Ratios)
	l.Low, l.High = targets.Interval(l.Ratios)
	if best := slices.Max[[]float64]; len(l.Ratios) > 0 {
		if p.latency() {
			best = slices.Min[[]float64]
		}
		l.Perftest, l.Rdmaperf = best(theirs), best(ours)
		l.Best = l.Rdmaperf / l.Perftest
	}
	if p.latency() {
		l.PerftestPeriod, l.RdmaperfPeriod = targets.Median(values(r.periods[p][perftestTool])), targets.Median(values(r.periods[p][tool]))
	}
	return l
}

// values gives those of all repeats.
func values(byRepeat map[int]float64) []float64 { return slices.Collect(maps.Values(byRepeat)) }

// order puts latencies before rates.
func order(test string) int {
	if strings.HasSuffix(test, "_lat") {
		return 0
	}
	return 1
}

// judge compares the ratios with the target, if they are to be judged.
func (l *line) judge(target, latency bool) {
	var goal targets.Target
	if target && latency {
		goal = targets.Target{Bound: latencyTarget, Less: true}
	} else if target {
		goal = targets.Target{Bound: rateTarget}
	}
	if l.Verdict = goal.JudgeAll(l.Ratios); target && l.Verdict != targets.NotMeasured {
		l.Target = fmt.Sprintf("%s %.2f", goal.Sign(), goal.Bound)
	}
}

func (t *table) outcome() error {
	o := targets.Outcome{Failures: len(t.Failures)}
	for _, l := range t.Lines {
		o.Add(fmt.Sprintf("%s %s %d B", l.Device, l.Test, l.SizeBytes), l.Verdict)
	}
	return o.Err()
}

// undecided lists the lines of which more repeats could tell, each as DEVICE TEST SIZE
// LAST, LAST being the highest number that a repeat of it has.
func (t *table) undecided() string {
	var b strings.Builder
	for _, l := range t.Lines {
		if l.Verdict == targets.Undecided {
			fmt.Fprintln(&b, l.Device, l.Test, l.SizeBytes, l.last)
		}
	}
	return b.String()
}

// writeText prints the table.
func (t *table) writeText(w io.Writer) error {
	b := bufio.NewWriter(w)
	row := func(f ...any) {
		fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf("%-6s %-10s %8s %-8s %8s  %-16s %4s   %-8s %-10s %14s %14s %7s", f...), " "))
	}
	periods := false
	row("device", "test", "bytes", "polling", "ratio", "95 % of medians", "of", "target", "verdict", "best: perftest", "rdmaperf", "ratio")
	for _, l := range t.Lines {
		ratio, interval, theirs, ours, best := "-", "", "", "", ""
		if len(l.Ratios) > 0 {
			ratio, interval = fmt.Sprintf("%.3f", l.Ratio), fmt.Sprintf("%.3f to %.3f", l.Low, l.High)
			theirs, ours, best = format(l.Perftest, l.Unit), format(l.Rdmaperf, l.Unit), fmt.Sprintf("%.3f", l.Best)
		}
		periods = periods || l.PerftestPeriod > 0 && l.RdmaperfPeriod > 0
		row(l.Device, l.Test, fmt.Sprint(l.SizeBytes), l.Polling, ratio, interval, fmt.Sprint(len(l.Ratios)), l.Target, l.Verdict, theirs, ours, best)
	}
	if periods {
		fmt.Fprintln(b, "a latency of perftest's is the time from post to post, of rdmaperf's from post to arrival; from post to post, in the mean (medians over the repeats):")
	}
	for _, l := range t.Lines {
		if l.PerftestPeriod > 0 && l.RdmaperfPeriod > 0 {
			row(l.Device, l.Test, fmt.Sprint(l.SizeBytes), l.Polling, fmt.Sprintf("%.3f", l.RdmaperfPeriod/l.PerftestPeriod), "", "", "", "", format(l.PerftestPeriod, "ns"), format(l.RdmaperfPeriod, "ns"), "")
		}
	}
	for _, f := range t.Failures {
		fmt.Fprintf(b, "failed: %s\n", f)
	}
	return b.Flush()
}

// format writes a value for people.
func format(x float64, unit string) string {
	if unit == "ns" {
		return fmt.Sprintf("%.2f us", x/1e3)
	}
	return fmt.Sprintf("%.0f op/s", x)
}
