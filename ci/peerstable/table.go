package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// row is one line of the table as data: a series, what it is compared with, and
// the target, which bounds the ratio when there is a reference and else the
// value. less: smaller is better.
type row struct {
	group, name string
	series      string
	reference   string
	refName     string
	bound       float64 // 0: no target
	less        bool
	optional    bool // a foreign tool that need not be installed
}

const (
	latencyGroup = "64 B send, busy polling, half round trip p50"
	streamGroup  = "1 MiB writes, depth 16"
	rateGroup    = "64 B writes, depth 128"
	recordGroup  = "recording one operation"
)

// rows are the project's speed goals and the figures around them.
var rows = []row{
	{group: latencyGroup, name: "C floor", series: "floor/latency", less: true},
	{group: latencyGroup, name: "rdmaperf tcp", series: "tcp/latency", reference: "floor/latency", refName: "C floor",
		bound: 1.15, less: true},
	{group: latencyGroup, name: "rdmaperf iwarp", series: "iwarp/latency", reference: "tcp/latency", refName: "tcp",
		bound: 1.25, less: true},
	{group: latencyGroup, name: "rdmaperf iwarp(nocrc)", series: "iwarp(nocrc)/latency", reference: "tcp/latency",
		refName: "tcp", less: true},
	{group: latencyGroup, name: "libfabric tcp, mean", series: "libfabric/latency", reference: "floor/latency",
		refName: "C floor", less: true, optional: true},
	{group: latencyGroup, name: "iwarp beside libfabric", series: "iwarp/latency", reference: "libfabric/latency",
		refName: "libfabric", bound: 1, less: true, optional: true},
	{group: latencyGroup, name: "UCX tcp", series: "ucx/latency", reference: "floor/latency", refName: "C floor",
		less: true, optional: true},
	{group: latencyGroup, name: "iwarp beside UCX", series: "iwarp/latency", reference: "ucx/latency", refName: "UCX",
		bound: 1, less: true, optional: true},
	{group: latencyGroup, name: "qperf tcp_lat, mean", series: "qperf/latency", reference: "floor/latency",
		refName: "C floor", less: true, optional: true},

	{group: streamGroup, name: "C floor", series: "floor/stream"},
	// A verified stream has a buffer for each message on its way. Copies between so many come
	// from the L3 cache, and a floor that has one buffer is no floor for that.
	{group: streamGroup, name: "C floor, 16 buffers", series: "floor/spread", reference: "floor/stream",
		refName: "C floor"},
	{group: streamGroup, name: "rdmaperf tcp", series: "tcp/stream", reference: "floor/stream", refName: "C floor"},
	{group: streamGroup, name: "rdmaperf tcp, by those", series: "tcp/stream", reference: "floor/spread",
		refName: "C floor, 16"},
	{group: streamGroup, name: "rdmaperf iwarp", series: "iwarp/stream", reference: "tcp/stream", refName: "tcp",
		bound: 0.8},
	{group: streamGroup, name: "rdmaperf iwarp(nocrc)", series: "iwarp(nocrc)/stream", reference: "tcp/stream",
		refName: "tcp", bound: 0.9},
	{group: streamGroup, name: "UCX tcp put", series: "ucx/stream", reference: "floor/stream", refName: "C floor",
		optional: true},
	{group: streamGroup, name: "qperf tcp_bw", series: "qperf/stream", reference: "floor/stream", refName: "C floor",
		optional: true},

	{group: rateGroup, name: "rdmaperf iwarp", series: "iwarp/rate", bound: 3e6},
	{group: rateGroup, name: "UCX tcp put", series: "ucx/rate", reference: "iwarp/rate", refName: "iwarp",
		optional: true},

	{group: recordGroup, name: "reports.Recorder", series: "record/cost", bound: 20, less: true},
}

// table is the JSON document and the source of the text.
type table struct {
	Schema      string              `json:"schema"`
	Started     time.Time           `json:"written"`
	Seconds     float64             `json:"window_seconds"`
	Environment reports.Environment `json:"environment"`
	Lines       []line              `json:"lines"`
	Failures    []string            `json:"failures,omitempty"`
	Note        string              `json:"note,omitempty"` // what disturbed the measurement
}

// line is one measured row. Value is the median of Values; Ratio the median of
// the ratios taken inside each repeat.
type line struct {
	Group     string          `json:"group"`
	Name      string          `json:"name"`
	Series    string          `json:"series"`
	Unit      string          `json:"unit"`
	Values    []float64       `json:"values"`
	Value     float64         `json:"value"`
	Reference string          `json:"reference,omitempty"`
	Ratios    []float64       `json:"ratios,omitempty"`
	Ratio     float64         `json:"ratio,omitempty"`
	Target    string          `json:"target,omitempty"`
	Verdict   targets.Verdict `json:"verdict,omitempty"`

	refName string
}

// sets are what --only chooses from, each with the series' first parts that it
// measures.
var sets = map[string][]string{
	"floor":    {"floor"},
	"rdmaperf": {"tcp", "iwarp", "iwarp(nocrc)"},
	"record":   {"record"},
	"foreign":  {"libfabric", "ucx", "qperf"},
}

// selection turns "floor,record" into the sources asked for; "" is everything.
func selection(only string) (map[string]bool, error) {
	sources := map[string]bool{}
	for name, members := range sets {
		if only == "" || slices.Contains(strings.Split(only, ","), name) {
			for _, m := range members {
				sources[m] = true
			}
		}
	}
	for name := range strings.SplitSeq(only, ",") {
		if sets[name] == nil && only != "" {
			return nil, fmt.Errorf("unknown set %q: want floor, rdmaperf, record or foreign", name)
		}
	}
	return sources, nil
}

func source(series string) string {
	s, _, _ := strings.Cut(series, "/")
	return s
}

// build computes the table of the chosen sources. A row whose reference was not
// chosen keeps its value and loses its target.
func build(r *raw, sources map[string]bool) *table {
	t := &table{Schema: "rdmaperf-peers/v1", Lines: []line{}, Failures: r.failures}
	order := make([]int, 0, len(r.repeats))
	for n := range r.repeats {
		order = append(order, n)
	}
	slices.Sort(order)
	for _, w := range rows {
		if !sources[source(w.series)] {
			continue
		}
		if w.reference != "" && !sources[source(w.reference)] {
			w.reference, w.bound = "", 0
		}
		l := line{Group: w.group, Name: w.name, Series: w.series, Unit: unitOf(w.series), Reference: w.reference,
			refName: w.refName, Values: []float64{}}
		for _, n := range order {
			x, measured := r.repeats[n][w.series]
			if !measured {
				continue
			}
			l.Values = append(l.Values, x)
			if ref, measured := r.repeats[n][w.reference]; measured {
				l.Ratios = append(l.Ratios, x/ref)
			}
		}
		l.Value, l.Ratio = targets.Median(l.Values), targets.Median(l.Ratios)
		l.judge(w)
		if w.optional && l.Verdict == targets.NotMeasured {
			continue
		}
		t.Lines = append(t.Lines, l)
	}
	return t
}

// judge compares with the target. A line without its reference is not measured.
func (l *line) judge(w row) {
	goal := targets.Target{Bound: w.bound, Less: w.less}
	got, n := l.Value, len(l.Values)
	if w.reference != "" && (w.bound != 0 || w.optional) {
		got, n = l.Ratio, len(l.Ratios)
	}
	if w.bound != 0 && w.reference != "" {
		l.Target = fmt.Sprintf("%s %.2fx", goal.Sign(), w.bound)
	} else if w.bound != 0 {
		l.Target = goal.Sign() + " " + format(w.bound, l.Unit)
	}
	l.Verdict = goal.Judge(got, n)
}

func (t *table) outcome() error {
	o := targets.Outcome{Failures: len(t.Failures)}
	for _, l := range t.Lines {
		o.Add(l.Group+": "+l.Name, l.Verdict)
	}
	return o.Err()
}

// writeText prints the table, with the spread of the ratios over the repeats.
func (t *table) writeText(w io.Writer) error {
	b := bufio.NewWriter(w)
	group := ""
	fmt.Fprintln(b, textLine("measure", "value", "ratio, median (least to most)", "target", "verdict"))
	for _, l := range t.Lines {
		if l.Group != group {
			group = l.Group
			fmt.Fprintln(b, group)
		}
		value, ratio := "-", ""
		if len(l.Values) > 0 {
			value = format(l.Value, l.Unit)
		}
		if len(l.Ratios) > 0 {
			ratio = fmt.Sprintf("%.2fx of %s (%.2f to %.2f)", l.Ratio, l.refName, slices.Min(l.Ratios),
				slices.Max(l.Ratios))
		}
		fmt.Fprintln(b, textLine("  "+l.Name, value, ratio, l.Target, string(l.Verdict)))
	}
	for _, f := range t.Failures {
		fmt.Fprintf(b, "failed: %s\n", f)
	}
	if t.Note != "" {
		fmt.Fprintf(b, "note: %s\n", t.Note)
	}
	return b.Flush()
}

func textLine(name, value, ratio, target, verdict string) string {
	return strings.TrimRight(fmt.Sprintf("%-32s %10s   %-38s %-12s %s", name, value, ratio, target, verdict), " ")
}

// unitOf is the unit of a series, by its last part.
func unitOf(series string) string {
	switch series[strings.LastIndexByte(series, '/')+1:] {
	case "stream", "spread":
		return "B/s"
	case "rate":
		return "op/s"
	default:
		return "ns"
	}
}

// format writes a value for people; GB are 10^9 bytes.
func format(x float64, unit string) string {
	switch {
	case unit == "B/s":
		return fmt.Sprintf("%.2f GB/s", x/1e9)
	case unit == "op/s":
		return fmt.Sprintf("%.2f M/s", x/1e6)
	case x < 100:
		return fmt.Sprintf("%.1f ns", x)
	default:
		return fmt.Sprintf("%.2f us", x/1e3)
	}
}
