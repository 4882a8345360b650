package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

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

// Verdicts of a line.
const (
	verdictPass        = "pass"
	verdictFail        = "fail"
	verdictInfo        = "" // no target
	verdictNotMeasured = "not measured"
)

// table is the JSON document and the source of the text.
type table struct {
	Schema      string              `json:"schema"`
	Environment reports.Environment `json:"environment"`
	Lines       []line              `json:"lines"`
	Failures    []string            `json:"failures,omitempty"`
}

// line is one probe. Perftest and Rdmaperf are medians over the repeats, Ratio the
// median of the ratios taken inside each repeat.
type line struct {
	Device    string    `json:"device"`
	Test      string    `json:"test"`
	SizeBytes int64     `json:"size_bytes"`
	Unit      string    `json:"unit"` // ns or op/s
	Perftest  float64   `json:"perftest"`
	Rdmaperf  float64   `json:"rdmaperf"`
	Ratios    []float64 `json:"ratios"`
	Ratio     float64   `json:"ratio"`
	Target    string    `json:"target,omitempty"`
	Verdict   string    `json:"verdict,omitempty"`
}

// build computes the table. Without judge no line has a target.
func build(r *raw, judge bool) *table {
	t := &table{Schema: "rdmaperf-ratios/v1", Lines: []line{}, Failures: r.failures}
	for p, tools := range r.values {
		l := line{Device: p.device, Test: p.test, SizeBytes: p.size, Unit: "op/s", Ratios: []float64{}}
		if p.latency() {
			l.Unit = "ns"
		}
		var theirs, ours []float64
		for n, x := range tools["perftest"] {
			if y, both := tools["rdmaperf"][n]; both {
				theirs, ours, l.Ratios = append(theirs, x), append(ours, y), append(l.Ratios, y/x)
			}
		}
		slices.Sort(l.Ratios)
		l.Perftest, l.Rdmaperf, l.Ratio = median(theirs), median(ours), median(l.Ratios)
		l.judge(judge && p.hasTarget(), p.latency())
		t.Lines = append(t.Lines, l)
	}
	slices.SortFunc(t.Lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(order(a.Test), order(b.Test)), cmp.Compare(a.Test, b.Test), cmp.Compare(a.SizeBytes, b.SizeBytes))
	})
	return t
}

// order puts latencies before rates.
func order(test string) int {
	if strings.HasSuffix(test, "_lat") {
		return 0
	}
	return 1
}

// judge compares with the target.
func (l *line) judge(target, latency bool) {
	switch {
	case len(l.Ratios) == 0:
		l.Verdict = verdictNotMeasured
		return
	case !target:
		l.Verdict = verdictInfo
		return
	}
	met := l.Ratio >= rateTarget
	l.Target = fmt.Sprintf(">= %.2f", rateTarget)
	if latency {
		met = l.Ratio <= latencyTarget
		l.Target = fmt.Sprintf("<= %.2f", latencyTarget)
	}
	l.Verdict = verdictFail
	if met {
		l.Verdict = verdictPass
	}
}

// outcome is the exit code: what could not be measured weighs more than a missed
// target, because then the table proves nothing.
func (t *table) outcome() error {
	var missed, absent []string
	for _, l := range t.Lines {
		name := fmt.Sprintf("%s %s %d B", l.Device, l.Test, l.SizeBytes)
		switch l.Verdict {
		case verdictFail:
			missed = append(missed, name)
		case verdictNotMeasured:
			absent = append(absent, name)
		}
	}
	switch {
	case len(t.Lines) == 0:
		return &reports.ExitError{Code: reports.ExitFailed, Err: fmt.Errorf("nothing measured")}
	case len(absent) > 0:
		return &reports.ExitError{Code: reports.ExitFailed, Err: fmt.Errorf("not measured: %s", strings.Join(absent, "; "))}
	case len(t.Failures) > 0:
		return &reports.ExitError{Code: reports.ExitFailed, Err: fmt.Errorf("%d probes failed", len(t.Failures))}
	case len(missed) > 0:
		return &reports.ExitError{Code: reports.ExitThreshold, Err: fmt.Errorf("target missed: %s", strings.Join(missed, "; "))}
	}
	return nil
}

// writeText prints the table, with the spread of the ratios over the repeats.
func (t *table) writeText(w io.Writer) error {
	b := bufio.NewWriter(w)
	row := func(f ...any) {
		fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf("%-6s %-10s %8s %14s %14s   %-24s %-8s %s", f...), " "))
	}
	row("device", "test", "bytes", "perftest", "rdmaperf", "ratio (least to most)", "target", "verdict")
	for _, l := range t.Lines {
		theirs, ours, ratio := "-", "-", ""
		if len(l.Ratios) > 0 {
			theirs, ours = format(l.Perftest, l.Unit), format(l.Rdmaperf, l.Unit)
			ratio = fmt.Sprintf("%.3f (%.3f to %.3f)", l.Ratio, slices.Min(l.Ratios), slices.Max(l.Ratios))
		}
		row(l.Device, l.Test, fmt.Sprint(l.SizeBytes), theirs, ours, ratio, l.Target, l.Verdict)
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

// median of nothing is 0.
func median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	switch n := len(s); {
	case n == 0:
		return 0
	case n%2 == 1:
		return s[n/2]
	default:
		return (s[n/2-1] + s[n/2]) / 2
	}
}
