package reports

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// WriteBench prints the document in the Go benchmark data format, design
// document 14313, which benchstat reads: one line per result, such as
//
//	BenchmarkLatency/op=send/transport=iwarp/size=64/depth=1/qps=1/polling=busy-1 1000 2310 ns/op …
//
// The number after the dash is the number of client threads. Results that
// differ only in other parameters have the same name, which benchstat takes for
// repeats. Results without operations are left out, since they measured nothing.
//
// Only the machine is written as configuration: benchstat puts results under
// different configurations into different tables, so that a version or a time
// there would keep old and new apart that are to be compared. These stand in a
// comment, which every reader of the format passes over.
func WriteBench(w io.Writer, d *Document) error {
	var out bytes.Buffer
	e := &d.Environment
	fmt.Fprintf(&out, "# rdmaperf %s, %s, started %s\n", printable(e.Version), printable(e.Go), d.Started.UTC().Format("2006-01-02T15:04:05Z"))
	for _, c := range [][2]string{
		{"goos", e.OS}, {"goarch", e.Arch}, {"cpu", e.CPU}, {"cpus", strconv.Itoa(e.CPUs)}, {"kernel", e.Kernel},
		{"governor", strings.Join(e.Governors, ",")}, {"clocksource", e.Clock}, {"gomaxprocs", strconv.Itoa(e.GOMAXPROCS)}, {"gogc", e.GOGC},
	} {
		if c[1] != "" && c[1] != "0" {
			fmt.Fprintf(&out, "%s: %s\n", c[0], printable(c[1]))
		}
	}
	// benchstat knows ns/op; the direction of the others has to be said.
	for _, u := range []string{"msg/s", "B/s"} {
		fmt.Fprintf(&out, "Unit %s better=higher\n", u)
	}
	for _, u := range []string{"p50-ns", "p99-ns", "p99.9-ns", "max-ns", "errors"} {
		fmt.Fprintf(&out, "Unit %s better=lower\n", u)
	}
	if slices.ContainsFunc(d.Results, func(r Result) bool { return r.Bidirectional != nil }) {
		out.WriteString("Unit from-client-B/s better=higher\nUnit from-server-B/s better=higher\n")
	}
	if slices.ContainsFunc(d.Results, func(r Result) bool { return r.Incast != nil }) {
		out.WriteString("Unit slowest-B/s better=higher\nUnit jain better=higher\n")
	}
	if slices.ContainsFunc(d.Results, func(r Result) bool { return r.Connect != nil }) {
		out.WriteString("Unit conn/s better=higher\nUnit connect-p50-ns better=lower\nUnit full-p50-ns better=lower\n")
	}
	if slices.ContainsFunc(d.Results, func(r Result) bool { return r.Starvation != nil }) {
		out.WriteString("Unit high-B/s better=higher\nUnit low-B/s better=higher\n")
	}
	if slices.ContainsFunc(d.Results, func(r Result) bool { return r.ParamServer != nil }) {
		out.WriteString("Unit overlap better=higher\n")
	}
	if slices.ContainsFunc(d.Results, func(r Result) bool { return r.HOL != nil }) {
		for _, v := range holBenchValues {
			better := "lower"
			if v.higher {
				better = "higher"
			}
			fmt.Fprintf(&out, "Unit %s better=%s\n", v.unit, better)
		}
	}
	out.WriteByte('\n')
	for i := range d.Results {
		if r := &d.Results[i]; r.Operations > 0 {
			benchLine(&out, r)
		}
	}
	if e := d.Error; e != nil {
		fmt.Fprintf(&out, "\n# run ended early: %s: %s\n", printable(e.Operation), printable(e.Message))
	}
	if _, err := w.Write(out.Bytes()); err != nil {
		return fmt.Errorf("write benchmark report: %w", err)
	}
	return nil
}

// holBenchValues are the figures of a head-of-line result; its ns/op is that of the
// loaded bulk stream.
var holBenchValues = []struct {
	unit   string
	higher bool
	of     func(h *HOL) float64
}{
	{"alone-p50-ns", false, func(h *HOL) float64 { return h.ProbeAlone.P50 }},
	{"alone-p99-ns", false, func(h *HOL) float64 { return h.ProbeAlone.P99 }},
	{"loaded-p50-ns", false, func(h *HOL) float64 { return h.ProbeLoaded.P50 }},
	{"loaded-p99-ns", false, func(h *HOL) float64 { return h.ProbeLoaded.P99 }},
	{"bulk-alone-B/s", true, func(h *HOL) float64 { return h.BulkAloneBytesPerSecond }},
	{"bulk-loaded-B/s", true, func(h *HOL) float64 { return h.BulkLoadedBytesPerSecond }},
}

func benchLine(out *bytes.Buffer, r *Result) {
	transport := r.Transport
	if transport == "" {
		transport = r.Stack
	}
	out.WriteString("Benchmark" + benchName(r.Workload))
	if r.Op != "" {
		out.WriteString("/op=" + benchValue(r.Op))
	}
	fmt.Fprintf(out, "/transport=%s/size=%d/depth=%d/qps=%d", benchValue(transport), r.SizeBytes, r.Depth, r.QPs)
	if r.Polling != "" {
		out.WriteString("/polling=" + benchValue(r.Polling))
	}
	if r.Rate > 0 {
		out.WriteString("/rate=" + rateText(r.Rate) + "/arrivals=" + benchValue(r.Arrivals))
	}
	if r.Bidirectional != nil {
		out.WriteString("/bidirectional=true")
	}
	if r.HOL != nil && r.HOL.Arm != "" {
		out.WriteString("/arm=" + benchValue(r.HOL.Arm))
		if r.HOL.AppWindow > 0 {
			fmt.Fprintf(out, "/app_slice=%d/app_window=%d", r.HOL.AppSliceBytes, r.HOL.AppWindow)
		}
	}
	if s := r.Starvation; s != nil {
		out.WriteString("/highload=" + number(s.HighLoadPercent, -1))
	}
	if ps := r.ParamServer; ps != nil {
		fmt.Fprintf(out, "/model=%s/arm=%s/ratio=%s", benchValue(ps.Model), benchValue(ps.Arm), number(ps.ComputeRatio, -1))
	}
	switch c := r.RPC; {
	case r.KV != nil:
		fmt.Fprintf(out, "/mix=%s/records=%d", benchValue(r.KV.Mix), r.KV.Records)
	case c != nil:
		fmt.Fprintf(out, "/call=%s/response=%d", benchValue(c.Call), c.ResponseBytes)
	}
	fmt.Fprintf(out, "-%d %d", max(r.Threads, 1), r.Operations)

	value := func(v float64, unit string) {
		if finite(v) {
			out.WriteString(" " + strconv.FormatFloat(v, 'f', -1, 64) + " " + unit)
		}
	}
	// Without latency samples an operation's time is its share of the window.
	if l := r.Latency; l == nil {
		value(roundTo(float64(r.DurationNs)/float64(r.Operations)), "ns/op")
	} else {
		value(roundTo(l.Mean), "ns/op")
		value(l.P50, "p50-ns")
		value(l.P99, "p99-ns")
		value(l.P999, "p99.9-ns")
		value(l.Max, "max-ns")
	}
	if c := r.Connect; c != nil && r.Throughput != nil {
		value(roundTo(r.Throughput.OperationsPerSecond), "conn/s")
		value(c.Connect.P50, "connect-p50-ns")
		value(c.Full.P50, "full-p50-ns")
	} else if t := r.Throughput; t != nil {
		value(roundTo(t.BytesPerSecond), "B/s")
		value(roundTo(t.OperationsPerSecond), "msg/s")
	}
	if b := r.Bidirectional; b != nil {
		value(roundTo(b.FromClient.BytesPerSecond), "from-client-B/s")
		value(roundTo(b.FromServer.BytesPerSecond), "from-server-B/s")
	}
	if in := r.Incast; in != nil {
		value(roundTo(in.MinBytesPerSecond), "slowest-B/s")
		value(in.Jain, "jain")
	}
	if s := r.Starvation; s != nil {
		value(roundTo(s.High.BytesPerSecond), "high-B/s")
		value(roundTo(s.Low.BytesPerSecond), "low-B/s")
	}
	if ps := r.ParamServer; ps != nil {
		value(roundTo(ps.Iteration.P50), "p50-ns")
		value(roundTo(ps.Iteration.P99), "p99-ns")
		if o, ok := ps.overlap(); ok {
			value(o, "overlap")
		}
	}
	if h := r.HOL; h != nil {
		for _, v := range holBenchValues {
			value(roundTo(v.of(h)), v.unit)
		}
	}
	if r.Errors > 0 {
		value(float64(r.Errors), "errors")
	}
	out.WriteByte('\n')
}

// roundTo drops what is below a thousandth: no clock here has picoseconds.
func roundTo(v float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 3, 64), 64)
	if err != nil {
		return v
	}
	return rounded
}

// benchName makes a workload's name what must follow "Benchmark": letters and
// digits, the first in upper case.
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
	}, printable(s))
}
