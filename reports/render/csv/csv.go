// Package csv writes results as CSV, a row for each figure.
package csv

import (
	"bytes"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

var columns = []string{"started", "version", "hostname", "stack", "transport", "label", "workload", "op", "size_bytes",
	"depth", "qps", "threads",
	"polling", "round_trip", "measured_by", "rate", "arrivals", "impairment", "app_work_ns", "dims", "repeat",
	"verified", "verify", "disturbance", "disturbance_reasons", "figure", "quantity", "unit", "better", "value", "mark"}

// Write prints one row for each figure of each result, in the format of RFC 4180 with CRLF, in units of the document.
// Percentiles with fewer than ten samples above them have no row. mark is "least" for a lower bound. A text that begins
// like a formula has an apostrophe before it.
func Write(w io.Writer, d *reports.Document) error {
	var out bytes.Buffer
	cw := csv.NewWriter(&out)
	cw.UseCRLF = true // RFC 4180 §2.1
	_ = cw.Write(columns)
	for _, r := range reports.Pointers(d.Results) {
		point := pointFields(d, r)
		for _, f := range r.AllFigures() {
			if !view.Finite(f.Value) || r.Mark(f.Name) == "few" {
				continue
			}
			row := append(slices.Clone(point), f.Name, f.Quantity.String(), f.Unit(), f.Better.String(), number(f),
				r.Mark(f.Name))
			for k := range row {
				row[k] = harmless(view.Printable(row[k]))
			}
			_ = cw.Write(row)
		}
	}
	cw.Flush()
	return reports.WriteAll(w, "CSV report", out.Bytes())
}

func pointFields(d *reports.Document, r *reports.Result) []string {
	verify, verdict, reasons := "", "", ""
	if v := r.Verification; v != nil {
		verify = v.Mode
	}
	if n := r.Disturbance; n != nil {
		verdict, reasons = n.Verdict, strings.Join(n.Reasons, "; ")
	}
	dims := slices.DeleteFunc(r.PointDims(), func(d reports.Dim) bool {
		return d.Name == "impairment" || d.Name == "app_work_ns" // columns of their own
	})
	return []string{d.Started.UTC().Format(time.RFC3339Nano), d.Environment.Version, d.Environment.Hostname, r.Stack,
		r.Transport, r.Label, r.Workload, r.Op, view.Integer(r.SizeBytes), strconv.Itoa(r.Depth), strconv.Itoa(r.QPs),
		strconv.Itoa(max(r.Threads, 1)), r.Polling, r.RoundTrip, r.MeasuredBy, reports.Offered(r), r.Arrivals,
		r.Impairment, view.When(r.AppWorkNs > 0, view.Integer(r.AppWorkNs)), reports.DimsText(dims, " "),
		view.When(r.Repeat > 0, strconv.Itoa(r.Repeat)), strconv.FormatBool(r.Verified), verify, verdict, reasons}
}

func number(f reports.Figure) string {
	if f.Quantity == reports.QuantityTime {
		f.Value = view.RoundTo(f.Value)
	}
	return strconv.FormatFloat(f.Value, 'f', -1, 64)
}

// harmless keeps a spreadsheet from running a text as a formula (OWASP, CSV injection).
func harmless(s string) string {
	if s == "" || !strings.ContainsRune("=+-@\t\r", rune(s[0])) {
		return s
	}
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return s
	}
	return "'" + s
}
