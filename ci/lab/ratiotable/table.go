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

// table is the JSON document and the source of the text.
type table struct {
	Schema      string              `json:"schema"`
	Environment reports.Environment `json:"environment"`
	Lines       []line              `json:"lines"`
	Failures    []string            `json:"failures,omitempty"`
}

// Figures of a line.
const (
	figureHalf   = "latency" // p50: half a round trip, of reads and atomics a whole one
	figurePeriod = "period"  // the mean time from post to post, halved as the latency is
	figureRate   = "rate"
)

// line is one figure of one probe. Ratios are taken inside each repeat; Ratio is their median,
// and with a certainty of 95 % it lies from Low to High. Perftest and Rdmaperf are the best
// of the repeats, Best is the ratio of those.
type line struct {
	Device    string          `json:"device"`
	Test      string          `json:"test"`
	SizeBytes int64           `json:"size_bytes"`
	Figure    string          `json:"figure"`
	Polling   string          `json:"polling"`            // rdmaperf's; perftest's is busy
	Verified  bool            `json:"verified,omitempty"` // rdmaperf compares the data, which perftest cannot
	Unit      string          `json:"unit"`               // ns or op/s
	Perftest  float64         `json:"perftest"`
	Rdmaperf  float64         `json:"rdmaperf"`
	Ratio     float64         `json:"ratio"`
	Low       float64         `json:"ratio_low"`
	High      float64         `json:"ratio_high"`
	Ratios    []float64       `json:"ratios"`
	Best      float64         `json:"ratio_of_best"`
	Margin    float64         `json:"margin,omitempty"` // within which it counts as equal; 0: only shown
	Verdict   targets.Verdict `json:"verdict,omitempty"`
}

// ways are what rdmaperf does that perftest does as well, which is judged, and what it does
// besides.
var ways = []struct {
	tool, polling    string
	verified, judged bool
}{
	{busyTool, reports.PollingBusy, false, true},
	{verifiedTool, reports.PollingBusy, true, false},
	{adaptiveTool, reports.PollingAdaptive, false, false},
}

// build computes the table. Without judge no line has a margin.
func build(r *raw, judge bool) *table {
	t := &table{Schema: "rdmaperf-ratios/v4", Lines: []line{}, Failures: r.failures}
	for p, own := range r.values {
		tools := maps.Clone(own)
		if whole := r.whole[p]; whole != nil { // beside what ran in one piece as well
			tools[verifiedTool] = whole[verifiedTool]
		}
		alone := len(tools[verifiedTool])+len(tools[adaptiveTool]) == 0
		for _, w := range ways {
			if len(tools[w.tool]) == 0 && !(w.judged && alone) {
				continue
			}
			figure := figureRate
			if p.latency() {
				figure = figureHalf
			}
			theirs := tools[perftestTool]
			if w.verified && r.whole[p] != nil {
				theirs = r.whole[p][perftestTool]
			}
			l := newLine(p, figure, theirs, tools[w.tool])
			l.Polling, l.Verified = w.polling, w.verified
			l.judge(judge && w.judged, p.margin(false), p.latency())
			t.Lines = append(t.Lines, l)
			if periods := r.periods[p]; p.latency() {
				l := newLine(p, figurePeriod, periods[perftestTool], periods[w.tool])
				if len(l.Ratios) == 0 {
					continue // of tools that do not say how long all of it took
				}
				l.Polling, l.Verified = w.polling, w.verified
				l.judge(judge && w.judged, p.margin(true), true)
				t.Lines = append(t.Lines, l)
			}
		}
	}
	slices.SortFunc(t.Lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(order(a.Test), order(b.Test)),
			cmp.Compare(a.Test, b.Test), cmp.Compare(a.SizeBytes, b.SizeBytes),
			cmp.Compare(a.Figure, b.Figure), -cmp.Compare(a.Polling, b.Polling), cmp.Compare(a.data(), b.data()))
	})
	return t
}

// newLine sets one tool's values by repeat beside perftest's.
func newLine(p probe, figure string, theirs, ours map[int]float64) line {
	l := line{Device: p.device, Test: p.test, SizeBytes: p.size, Figure: figure, Unit: "op/s", Ratios: []float64{}}
	if p.latency() {
		l.Unit = "ns"
	}
	var xs, ys []float64
	for n, x := range theirs {
		if y, both := ours[n]; both && x > 0 && y > 0 {
			xs, ys, l.Ratios = append(xs, x), append(ys, y), append(l.Ratios, y/x)
		}
	}
	slices.Sort(l.Ratios)
	l.Ratio = targets.Median(l.Ratios)
	l.Low, l.High = targets.Interval(l.Ratios)
	if best := slices.Max[[]float64]; len(l.Ratios) > 0 {
		if p.latency() {
			best = slices.Min[[]float64]
		}
		l.Perftest, l.Rdmaperf = best(xs), best(ys)
		l.Best = l.Rdmaperf / l.Perftest
	}
	return l
}

// data says whether rdmaperf compares it.
func (l *line) data() string {
	if l.Verified {
		return "compared"
	}
	return "-"
}

// judge gives the line its verdict, if it has a margin. What has no pair at all is said in
// any case.
func (l *line) judge(judged bool, margin float64, less bool) {
	switch {
	case judged && margin > 0:
		l.Margin = margin
		l.Verdict = decide(l.Low, l.High, len(l.Ratios), margin, less)
	case len(l.Ratios) == 0:
		l.Verdict = targets.NotMeasured
	}
}

// order puts latencies before rates.
func order(test string) int {
	if strings.HasSuffix(test, "_lat") {
		return 0
	}
	return 1
}

// writeText prints the table.
func (t *table) writeText(w io.Writer) error {
	b := bufio.NewWriter(w)
	row := func(f ...any) {
		fmt.Fprintln(b, strings.TrimRight(
			fmt.Sprintf("%-6s %-10s %8s %-7s %-8s %-8s %8s  %-16s %4s   %-6s %-10s %14s %14s %7s", f...), " "))
	}
	row("device", "test", "bytes", "figure", "polling", "data", "ratio", "95 % of medians", "of", "margin", "verdict",
		"best: perftest", "rdmaperf", "ratio")
	period := false
	for _, l := range t.Lines {
		ratio, interval, theirs, ours, best, margin := "-", "", "", "", "", ""
		if len(l.Ratios) > 0 {
			ratio, interval = fmt.Sprintf("%.3f", l.Ratio), fmt.Sprintf("%.3f to %.3f", l.Low, l.High)
			theirs, ours, best = format(l.Perftest, l.Unit), format(l.Rdmaperf, l.Unit), fmt.Sprintf("%.3f", l.Best)
		}
		if l.Margin > 0 {
			margin = fmt.Sprintf("%.0f %%", 100*l.Margin)
		}
		period = period || l.Figure == figurePeriod
		row(l.Device, l.Test, fmt.Sprint(l.SizeBytes), l.Figure, l.Polling, l.data(), ratio, interval,
			fmt.Sprint(len(l.Ratios)), margin, l.Verdict, theirs, ours, best)
	}
	if period {
		fmt.Fprintln(b, "latency: rdmaperf's p50 of the time from post to arrival beside perftest's median time from "+
			"post to post, which is what it calls a latency; period: the mean time from post to post of both")
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
