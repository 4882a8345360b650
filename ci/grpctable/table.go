package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// row is one line as data: a figure of an arm, what it is compared with, and the
// target, which bounds the ratio when there is a reference and else the value.
type row struct {
	set, arm, figure string
	reference        string  // another arm of the set
	bound            float64 // 0: no target
}

const (
	tcp    = "grpc(tcp)"
	best   = "grpc(tcp,best)"
	dropin = "grpc(dropin)+iwarp"
	fused  = "grpc(fused)+iwarp"
	floor  = "grpc(bufconn)" // grpc-go without a network, both ends in one process

	dropinBP    = "grpc(dropin,bp)+iwarp"
	fusedBP     = "grpc(fused,bp)+iwarp"
	dropinEvent = "grpc(dropin,event)+iwarp"
	fusedEvent  = "grpc(fused,event)+iwarp"
)

// sets are the measurements, in their order.
var sets = []struct{ name, title string }{
	{"small", "64 B unary calls, one outstanding"},
	{"many", "64 B unary calls, 16 outstanding on one connection"},
	{"large", "1 MiB unary calls, one outstanding"},
	{"conns", "64 B unary calls, one outstanding on each of 64 connections"},
	{"sweep", "64 B unary calls, one outstanding on each of so many connections"},
}

// sweepConns are the connections of the set sweep.
var sweepConns = []string{"1", "4", "16", "64"}

// rows are the project's goals and the figures around them. 46.92 % less latency and
// 2.35 times the throughput are RR-Compound's best over IPoIB (TPDS'24).
func rows() []row {
	var all []row
	for _, ref := range []string{tcp, best} {
		all = append(all,
			row{"small", fused, "mean", ref, 1 - 0.4692}, row{"small", fused, "rate", ref, 2.35},
			row{"small", fused, "p99", ref, 1},
			row{"small", dropin, "mean", ref, 0.8}, row{"small", dropin, "rate", ref, 0},
			row{"small", dropin, "p99", ref, 0},
			row{"many", dropin, "mean", ref, 1}, row{"many", dropin, "rate", ref, 1},
			row{"many", fused, "rate", ref, 0},
			row{"large", fused, "rate", ref, 1.5}, row{"large", dropin, "rate", ref, 1},
		)
	}
	// What of the time is HTTP/2's, and how much of what it can carry is reached.
	all = append(all, row{set: "small", arm: floor, figure: "mean"}, row{"small", dropin, "mean", floor, 0},
		row{set: "large", arm: floor, figure: "rate"}, row{"large", dropin, "rate", floor, 0},
		row{"large", best, "rate", floor, 0}, row{"large", fused, "rate", floor, 0})
	for _, s := range []string{"small", "many"} {
		for _, a := range []string{tcp, best} {
			all = append(all, row{set: s, arm: a, figure: "mean"}, row{set: s, arm: a, figure: "rate"},
				row{set: s, arm: a, figure: "p99"})
		}
	}
	all = append(all, row{set: "large", arm: tcp, figure: "rate"}, row{set: "large", arm: best, figure: "rate"},
		row{set: "conns", arm: dropinBP, figure: "rate"}, row{"conns", dropin, "rate", dropinBP, 0.9},
		row{"conns", dropinEvent, "rate", dropinBP, 0},
		row{set: "conns", arm: fusedBP, figure: "rate"}, row{"conns", fused, "rate", fusedBP, 0.9},
		row{"conns", fusedEvent, "rate", fusedBP, 0},
		// Nothing is called: near nothing with events, a poller's worth at most with bpev.
		row{set: "conns", arm: dropinEvent, figure: "idle", bound: 0.05}, row{set: "conns", arm: dropin, figure: "idle",
			bound: 1},
		row{set: "conns", arm: fusedEvent, figure: "idle", bound: 0.05}, row{set: "conns", arm: fused, figure: "idle",
			bound: 1},
	)
	for _, a := range []string{dropinEvent, dropin, fusedEvent, fused} {
		for _, n := range sweepConns {
			all = append(all, row{set: "sweep", arm: a + "/" + n, figure: "rate"})
		}
	}
	slices.SortStableFunc(all, func(a, b row) int { return place(a) - place(b) })
	return all
}

// place orders lines: by set, then what stands alone before what is compared.
func place(r row) int {
	n := 2 * slices.IndexFunc(sets, func(s struct{ name, title string }) bool { return s.name == r.set })
	if r.reference != "" {
		n++
	}
	return n
}

// table is the JSON document and the source of the text.
type table struct {
	Schema      string              `json:"schema"`
	Written     time.Time           `json:"written"`
	Environment reports.Environment `json:"environment"`
	Lines       []line              `json:"lines"`
	Note        string              `json:"note,omitempty"` // what disturbed the measurement
}

// line is one measured row. Value is the median of Values; Ratio the median of the
// ratios taken inside each repeat.
type line struct {
	Set       string          `json:"set"`
	Arm       string          `json:"arm"`
	Figure    string          `json:"figure"`
	Values    []float64       `json:"values"`
	Value     float64         `json:"value"`
	Reference string          `json:"reference,omitempty"`
	Ratios    []float64       `json:"ratios,omitempty"`
	Ratio     float64         `json:"ratio,omitempty"`
	Target    string          `json:"target,omitempty"`
	Verdict   targets.Verdict `json:"verdict,omitempty"`
}

func less(figure string) bool { return figure != "rate" }

// build computes the table of the chosen sets; "" is all.
func build(repeats map[int]values, only string) *table {
	t := &table{Schema: "rdmaperf-grpc-ratio/v1", Lines: []line{}}
	for _, w := range rows() {
		if only != "" && !slices.Contains(strings.Split(only, ","), w.set) {
			continue
		}
		l := line{Set: w.set, Arm: w.arm, Figure: w.figure, Reference: w.reference, Values: []float64{}}
		for _, n := range slices.Sorted(maps.Keys(repeats)) {
			x, measured := repeats[n][w.set+"/"+w.arm+"/"+w.figure]
			if !measured {
				continue
			}
			l.Values = append(l.Values, x)
			if ref := repeats[n][w.set+"/"+w.reference+"/"+w.figure]; ref > 0 {
				l.Ratios = append(l.Ratios, x/ref)
			}
		}
		l.Value, l.Ratio = targets.Median(l.Values), targets.Median(l.Ratios)
		l.judge(w)
		t.Lines = append(t.Lines, l)
	}
	return t
}

// judge compares with the target.
func (l *line) judge(w row) {
	goal := targets.Target{Bound: w.bound, Less: less(w.figure)}
	got, n, unit := l.Value, len(l.Values), ""
	if w.reference != "" {
		got, n, unit = l.Ratio, len(l.Ratios), "x"
	}
	if w.bound != 0 {
		l.Target = fmt.Sprintf("%s %.4g%s", goal.Sign(), w.bound, unit)
	}
	l.Verdict = goal.Judge(got, n)
}

func (t *table) outcome() error {
	var o targets.Outcome
	for _, l := range t.Lines {
		what := fmt.Sprintf("%s %s %s", l.Set, l.Arm, l.Figure)
		if l.Reference != "" {
			what += " beside " + l.Reference
		}
		o.Add(what, l.Verdict)
	}
	return o.Err()
}

// writeText prints the table, with the spread of the ratios over the repeats.
func (t *table) writeText(w io.Writer) error {
	b := bufio.NewWriter(w)
	set := ""
	for _, l := range t.Lines {
		if l.Set != set {
			set = l.Set
			i := slices.IndexFunc(sets, func(s struct{ name, title string }) bool { return s.name == set })
			fmt.Fprintln(b, sets[i].title)
		}
		value, ratio := "-", ""
		if len(l.Values) > 0 {
			value = format(l.Value, l.Figure)
		}
		if len(l.Ratios) > 0 {
			ratio = fmt.Sprintf("%.2fx of %s (%.2f to %.2f)", l.Ratio, l.Reference, slices.Min(l.Ratios),
				slices.Max(l.Ratios))
		}
		fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf("  %-28s %-4s %12s   %-47s %-11s %s", l.Arm, l.Figure, value,
			ratio, l.Target, l.Verdict), " "))
	}
	if t.Note != "" {
		fmt.Fprintf(b, "note: %s\n", t.Note)
	}
	return b.Flush()
}

// format writes a value for people.
func format(x float64, figure string) string {
	switch figure {
	case "rate":
		return fmt.Sprintf("%.0f call/s", x)
	case "idle":
		return fmt.Sprintf("%.3f CPU", x)
	}
	return fmt.Sprintf("%.1f us", x/1e3)
}
