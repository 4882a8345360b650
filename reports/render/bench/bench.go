// Package bench writes results in the Go benchmark data format for benchstat.
package bench

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Write prints the document in the Go benchmark data format (design document 14313), which benchstat reads:
//
//	BenchmarkLatency/op=send/transport=iwarp/size=64/depth=1/qps=1/polling=busy-1 1000 2310 ns/op …
//
// The number after the dash is the number of client threads. Results without operations are left out. Only the machine
// is configuration: benchstat would keep versions and times in different tables apart.
func Write(w io.Writer, d *reports.Document) error {
	var out bytes.Buffer
	e := &d.Environment
	fmt.Fprintf(&out, "# rdmaperf %s, %s, started %s\n", view.Printable(e.Version), view.Printable(e.Go),
		d.Started.UTC().Format("2006-01-02T15:04:05Z"))
	for _, c := range [][2]string{
		{"goos", e.OS}, {"goarch", e.Arch}, {"cpu", e.CPU}, {"cpus", strconv.Itoa(e.CPUs)}, {"kernel", e.Kernel},
		{"governor", strings.Join(e.Governors, ",")}, {"clocksource", e.Clock},
		{"gomaxprocs", strconv.Itoa(e.GOMAXPROCS)}, {"gogc", e.GOGC},
	} {
		if c[1] != "" && c[1] != "0" {
			fmt.Fprintf(&out, "%s: %s\n", c[0], view.Printable(c[1]))
		}
	}
	benchUnits(&out, d.Results)
	out.WriteByte('\n')
	for _, r := range reports.Pointers(d.Results) {
		if r.Operations > 0 {
			benchLine(&out, r)
		}
	}
	if e := d.Error; e != nil {
		fmt.Fprintf(&out, "\n# run ended early: %s: %s\n", view.Printable(e.Operation), view.Printable(e.Message))
	}
	return reports.WriteAll(w, "benchmark report", out.Bytes())
}

func unitOf(f reports.Figure) string {
	if u := map[reports.Quantity]string{reports.QuantityTime: "ns", reports.QuantityRate: "op/s",
		reports.QuantityBytes: "B/s", reports.QuantityMemory: "B"}[f.Quantity]; u != "" {
		return f.Name + "-" + u
	}
	return f.Name
}

// commonUnits are the figures of all workloads by their units.
var commonUnits = []struct{ unit, figure string }{{"p50-ns", "p50"}, {"p99-ns", "p99"}, {"p99.9-ns", "p999"},
	{"max-ns", "max"}, {"B/s", "bw"}, {"msg/s", "rate"}}

// countUnits are the figures that say how far to trust the others.
var countUnits = []struct{ unit, figure string }{{"compared-msgs", "compared.messages"},
	{"numbered-msgs", "compared.numbers"}, {"compared-B", "compared.bytes"}, {"due-ops", "load.due"},
	{"sent-ops", "load.sent"}, {"completed-ops", "load.completed"}, {"achieved-ops/s", "load.achieved"},
	{"saturated", "load.saturated"}}

func ownFigures(r *reports.Result) []reports.Figure {
	return slices.DeleteFunc(r.ShownFigures(), func(f reports.Figure) bool {
		common := slices.ContainsFunc(commonUnits, func(c struct{ unit, figure string }) bool {
			return c.figure == f.Name
		})
		return common || f.Name == "mean" || r.Mark(f.Name) == "few"
	})
}

// benchUnits says for each unit which direction is better.
func benchUnits(out *bytes.Buffer, results []reports.Result) {
	said := map[string]bool{}
	unit := func(better reports.Better, name string) {
		if said[name] || better == reports.Neither {
			return
		}
		said[name] = true
		fmt.Fprintf(out, "Unit %s better=%s\n", name, map[reports.Better]string{reports.Less: "lower",
			reports.More: "higher"}[better])
	}
	for _, c := range commonUnits {
		better := reports.Less
		if c.figure == "bw" || c.figure == "rate" {
			better = reports.More
		}
		unit(better, c.unit)
	}
	unit(reports.Less, "errors")
	for _, r := range reports.Pointers(results) {
		for _, f := range ownFigures(r) {
			unit(f.Better, unitOf(f))
		}
	}
}

func benchLine(out *bytes.Buffer, r *reports.Result) {
	fmt.Fprintf(out, "Benchmark%s%s/transport=%s/size=%d/depth=%d/qps=%d%s%s", benchName(r.Workload),
		view.When(r.Op != "", "/op="+benchValue(r.Op)), benchValue(reports.TransportOf(r)), r.SizeBytes, r.Depth, r.QPs,
		view.When(r.Polling != "", "/polling="+benchValue(r.Polling)),
		view.When(r.Rate > 0, "/rate="+view.RateText(r.Rate)+"/arrivals="+benchValue(r.Arrivals)))
	for _, d := range r.PointDims() {
		fmt.Fprintf(out, "/%s=%s", d.Name, benchValue(d.Value))
	}
	fmt.Fprintf(out, "-%d %d", max(r.Threads, 1), r.Operations)

	value := func(v float64, unit string) {
		if view.Finite(v) {
			out.WriteString(" " + strconv.FormatFloat(v, 'f', -1, 64) + " " + unit)
		}
	}
	// Percentiles with too few samples are left out. Without latencies an operation takes its share of the window.
	if l := r.Latency; l == nil {
		value(view.RoundTo(float64(r.DurationNs)/float64(r.Operations)), "ns/op")
	} else {
		value(view.RoundTo(l.Mean), "ns/op")
		for _, c := range commonUnits[:4] {
			if v, ok := r.Figure(c.figure); ok && r.Mark(c.figure) != "few" {
				value(v, c.unit)
			}
		}
	}
	if t := r.Throughput; t != nil {
		if t.BytesPerSecond > 0 {
			value(view.RoundTo(t.BytesPerSecond), "B/s")
		}
		value(view.RoundTo(t.OperationsPerSecond), "msg/s")
	}
	for _, f := range ownFigures(r) {
		value(f.Value, unitOf(f))
	}
	if d := r.Disturbance; d != nil {
		value(map[bool]float64{true: 1}[!d.Quiet()], "disturbed")
	}
	for _, c := range countUnits {
		if v, ok := r.Figure(c.figure); ok {
			value(view.RoundTo(v), c.unit)
		}
	}
	if r.Errors > 0 {
		value(float64(r.Errors), "errors")
	}
	out.WriteByte('\n')
}

// benchName makes letters and digits of a workload's name, the first in upper case.
func benchName(workload string) string {
	name := []rune(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, workload))
	if len(name) == 0 {
		return "Run"
	}
	name[0] = unicode.ToUpper(name[0])
	return string(name)
}

// benchValue keeps what would end a name or one of its parts out of a value.
func benchValue(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '/' {
			return '_'
		}
		return r
	}, view.Printable(s))
}
