package csv

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// csvColumns is the header.
func csvColumns(kinds []*reports.Kind) []reports.CSVColumn {
	all := slices.Clone(commonCSV)
	for _, k := range kinds {
		for _, c := range k.CSV {
			// Kinds may share a column.
			if !slices.ContainsFunc(all, func(o reports.CSVColumn) bool { return o.Name == c.Name }) {
				all = append(all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b reports.CSVColumn) int { return cmp.Compare(a.Since, b.Since) })
	return all
}

// commonCSV are the columns that any result may fill.
var commonCSV = slices.Concat(
	[]reports.CSVColumn{
		reports.CSVText("started", func(d *reports.Document, _ *reports.Result) string { return d.Started.UTC().Format(time.RFC3339Nano) }),
		reports.CSVText("version", func(d *reports.Document, _ *reports.Result) string { return d.Environment.Version }),
		reports.CSVText("hostname", func(d *reports.Document, _ *reports.Result) string { return d.Environment.Hostname }),
		reports.CSVText("stack", func(_ *reports.Document, r *reports.Result) string { return r.Stack }),
		reports.CSVText("transport", func(_ *reports.Document, r *reports.Result) string { return r.Transport }),
		reports.CSVText("label", func(_ *reports.Document, r *reports.Result) string { return r.Label }),
		reports.CSVText("workload", func(_ *reports.Document, r *reports.Result) string { return r.Workload }),
		reports.CSVText("op", func(_ *reports.Document, r *reports.Result) string { return r.Op }),
		reports.CSVWhole("size_bytes", func(r *reports.Result) int64 { return r.SizeBytes }),
		reports.CSVWhole("depth", func(r *reports.Result) int64 { return int64(r.Depth) }),
		reports.CSVWhole("qps", func(r *reports.Result) int64 { return int64(r.QPs) }),
		reports.CSVWhole("threads", func(r *reports.Result) int64 { return int64(max(r.Threads, 1)) }),
		reports.CSVText("polling", func(_ *reports.Document, r *reports.Result) string { return r.Polling }),
		reports.CSVText("round_trip", func(_ *reports.Document, r *reports.Result) string { return r.RoundTrip }),
		reports.CSVText("measured_by", func(_ *reports.Document, r *reports.Result) string { return r.MeasuredBy }),
		reports.CSVText("verified", func(_ *reports.Document, r *reports.Result) string { return strconv.FormatBool(r.Verified) }),
		reports.CSVWhole("duration_ns", func(r *reports.Result) int64 { return r.DurationNs }),
		reports.CSVWhole("operations", func(r *reports.Result) int64 { return r.Operations }),
		reports.CSVWhole("errors", func(r *reports.Result) int64 { return r.Errors }),
	},
	reports.CSVLatency(0, "latency", func(r *reports.Result) *reports.Latency { return r.Latency }),
	reports.CSVLatency(0, "corrected", func(r *reports.Result) *reports.Latency { return r.LatencyCorrected }),
	[]reports.CSVColumn{
		reports.CSVFigure(0, "bytes_per_second", "bw"),
		reports.CSVFigure(0, "operations_per_second", "rate"),
		{Since: 1, Name: "arrivals", Value: func(_ *reports.Document, r *reports.Result) string { return view.Printable(r.Arrivals) }},
		reports.CSVDetail(1, "rate", openOf, func(r *reports.Result) string { return reports.CSVNumber(r.Rate) }),
	},
	reports.CSVLatency(1, "service", func(r *reports.Result) *reports.Latency { return r.LatencyService }),
	[]reports.CSVColumn{
		reports.CSVDetail(1, "repeat", repeatOf, func(r *reports.Result) string { return strconv.Itoa(r.Repeat) }),
		reports.CSVDetail(1, "peak_bytes_per_second", peakOf, func(t *reports.Throughput) string { return reports.CSVNumber(t.PeakBytesPerSecond) }),
		reports.CSVDetail(1, "peak_over_ns", peakOf, func(t *reports.Throughput) string { return view.Integer(t.PeakOverNs) }),
		reports.CSVDetail(2, "client_cpu_seconds", cpuOf, func(c *reports.CPU) string { return reports.CSVNumber(c.ClientSeconds) }),
		reports.CSVDetail(2, "server_cpu_seconds", cpuOf, func(c *reports.CPU) string { return reports.CSVNumber(c.ServerSeconds) }),
		reports.CSVDetail(2, "client_collections", gcOf, func(g *reports.GC) string { return view.Integer(g.ClientCollections) }),
		reports.CSVDetail(2, "server_collections", gcOf, func(g *reports.GC) string { return view.Integer(g.ServerCollections) }),
		reports.CSVDetail(2, "client_allocations", gcOf, func(g *reports.GC) string { return view.Integer(g.ClientAllocations) }),
		reports.CSVDetail(2, "server_allocations", gcOf, func(g *reports.GC) string { return view.Integer(g.ServerAllocations) }),
		reports.CSVDetail(7, "machine_cpu_seconds", machineOf, func(c *reports.CPU) string { return reports.CSVNumber(c.MachineSeconds) }),
		reports.CSVDetail(8, "verify", verificationOf, func(v *reports.Verification) string { return v.Mode }),
		reports.CSVDetail(8, "numbers_compared", verificationOf, func(v *reports.Verification) string { return view.Integer(v.Numbers) }),
		reports.CSVDetail(8, "messages_compared", verificationOf, func(v *reports.Verification) string { return view.Integer(v.Whole) }),
		reports.CSVDetail(8, "bytes_compared", verificationOf, func(v *reports.Verification) string { return view.Integer(v.Bytes) }),
		reports.CSVDetail(8, "disturbance", disturbanceOf, func(d *reports.Disturbance) string { return d.Verdict }),
		reports.CSVDetail(8, "disturbance_reasons", disturbanceOf, func(d *reports.Disturbance) string { return strings.Join(d.Reasons, "; ") }),
		reports.CSVDetail(8, "due", loopOf, func(o *reports.OpenLoop) string { return view.Integer(o.Due) }),
		reports.CSVDetail(8, "sent", loopOf, func(o *reports.OpenLoop) string { return view.Integer(o.Sent) }),
		reports.CSVDetail(8, "completed", loopOf, func(o *reports.OpenLoop) string { return view.Integer(o.Completed) }),
		reports.CSVDetail(8, "achieved_per_second", loopOf, func(o *reports.OpenLoop) string { return reports.CSVNumber(o.AchievedPerSecond) }),
		reports.CSVDetail(8, "saturated", loopOf, func(o *reports.OpenLoop) string { return strconv.FormatBool(o.Saturated) }),
		reports.CSVDetail(8, "latency_unfinished", boundsOf, func(l *reports.Latency) string { return view.Integer(l.Unfinished) }),
		reports.CSVDetail(8, "latency_at_least", boundsOf, func(l *reports.Latency) string { return strings.Join(l.AtLeast, " ") }),
	})

// The parts of a result that not every one has; nil for one without.

func openOf(r *reports.Result) *reports.Result {
	if r.Rate == 0 {
		return nil
	}
	return r
}

func repeatOf(r *reports.Result) *reports.Result {
	if r.Repeat == 0 {
		return nil
	}
	return r
}

func peakOf(r *reports.Result) *reports.Throughput {
	if r.Throughput == nil || r.Throughput.PeakOverNs == 0 {
		return nil
	}
	return r.Throughput
}

func verificationOf(r *reports.Result) *reports.Verification { return r.Verification }

func disturbanceOf(r *reports.Result) *reports.Disturbance { return r.Disturbance }

func loopOf(r *reports.Result) *reports.OpenLoop { return r.OpenLoop }

func boundsOf(r *reports.Result) *reports.Latency {
	if r.Latency == nil || r.Latency.Unfinished == 0 {
		return nil
	}
	return r.Latency
}

func cpuOf(r *reports.Result) *reports.CPU { return r.CPU }

func gcOf(r *reports.Result) *reports.GC { return r.GC }

func machineOf(r *reports.Result) *reports.CPU {
	if r.CPU == nil || r.CPU.MachineSeconds == 0 {
		return nil
	}
	return r.CPU
}

// Write prints one row per result below a header that only grows at its end,
// in the format of RFC 4180 with CRLF. A figure that a result does not have is
// an empty field. A text that begins like a formula has an apostrophe before it. Percentiles that rest on too few samples are not marked; the
// count stands beside them.
func Write(w io.Writer, d *reports.Document, kinds []*reports.Kind) error {
	var out bytes.Buffer
	cw := csv.NewWriter(&out)
	cw.UseCRLF = true // RFC 4180 §2.1
	columns := csvColumns(kinds)
	fields := make([]string, len(columns))
	for i, c := range columns {
		fields[i] = c.Name
	}
	err := cw.Write(fields)
	for i := range d.Results {
		for j, c := range columns {
			fields[j] = harmless(c.Value(d, &d.Results[i]))
		}
		if err == nil {
			err = cw.Write(fields)
		}
	}
	cw.Flush()
	if err == nil {
		err = cw.Error()
	}
	if err == nil {
		_, err = w.Write(out.Bytes())
	}
	if err != nil {
		return fmt.Errorf("write CSV report: %w", err)
	}
	return nil
}

// harmless puts an apostrophe before a text that a spreadsheet would run as a formula
// (OWASP, CSV injection). Numbers stay as they are.
func harmless(s string) string {
	if s == "" || !strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}
