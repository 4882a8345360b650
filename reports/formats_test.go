package reports_test

import (
	"bytes"
	"encoding/csv"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/rdmaperf/rdmaperf/reports"
	csvformat "github.com/rdmaperf/rdmaperf/reports/render/csv"
	"github.com/rdmaperf/rdmaperf/reports/render/hlog"
	perftestformat "github.com/rdmaperf/rdmaperf/reports/render/perftest"
	metrics "github.com/rdmaperf/rdmaperf/reports/render/prometheus"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
)

func perftest(t *testing.T, d *reports.Document, gbits bool) []byte {
	t.Helper()
	return render(t, func(w io.Writer) error { return perftestformat.Write(w, d, gbits) })
}

func comma(t *testing.T, d *reports.Document) []byte {
	t.Helper()
	return render(t, func(w io.Writer) error { return csvformat.Write(w, d) })
}

// formatsDocument has a row of every kind: with histogram, without, head-of-line, open loop.
func formatsDocument() *reports.Document {
	d := goldenDocument()
	peak := d.Results[5].Throughput
	peak.PeakBytesPerSecond, peak.PeakOverNs = peak.BytesPerSecond*1.25, 64_000_000
	d.Results = append(d.Results, histogramDocument().Results...)
	open := d.Results[0]
	open.Rate, open.Arrivals, open.LatencyService = 20_000, "poisson", latency(60_000, 3000)
	faster := open
	faster.Rate = 40_000
	d.Results = append(d.Results, open, faster)
	return of(d)
}

func TestFormatsGolden(t *testing.T) {
	d := formatsDocument()
	golden(t, "perftest.txt", perftest(t, d, false))
	golden(t, "perftest-gbits.txt", perftest(t, d, true))
	golden(t, "results.csv", comma(t, d))
}

// The headings of perftest 6.2x, as its parsers look for them.
func TestPerftestHeadingsAreExact(t *testing.T) {
	out := string(perftest(t, goldenDocument(), false)) + string(perftest(t, goldenDocument(), true))
	for _, heading := range []string{
		" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% " +
			"percentile[usec]   99.9% percentile[usec] \n",
		" #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n",
		" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n",
	} {
		if !strings.Contains(out, "\n"+heading) {
			t.Errorf("no line %q in\n%s", heading, out)
		}
	}
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if _, err := strconv.Atoi(fields[0]); err == nil && len(fields) != 9 && len(fields) != 5 {
			t.Errorf("%d fields in %q, want 9 of latency or 5 of bandwidth", len(fields), line)
		}
	}
}

// One stall of 5 ms among 1000 samples: perftest drops it from all three.
// The mean is (999 quick samples, 2,596,900 ns in all, and 5,000,000 ns) / 1000.
func TestPerftestDropsNothing(t *testing.T) {
	d := histogramDocument()
	d.Results = d.Results[:1]
	for line := range strings.Lines(string(perftest(t, d, false))) {
		if f := strings.Fields(line); f[0] == "4096" {
			if f[1] != "1000" || f[3] != "5000.00" || f[5] != "7.60" || f[6] != "157.95" {
				t.Errorf("count, max, mean, stdev = %s %s %s %s, want 1000 5000.00 7.60 157.95", f[1], f[3], f[5], f[6])
			}
			return
		}
	}
	t.Error("no row")
}

// Any reader of RFC 4180 gets as many fields as there are headings.
func TestCSVIsRFC4180(t *testing.T) {
	d := formatsDocument()
	d.Results[0].Transport = "a,\"b\"\r\nc"
	out := comma(t, d)
	if strings.Count(string(out), "\n") != strings.Count(string(out), "\r\n") {
		t.Error("a line does not end in CRLF")
	}
	rows, err := csv.NewReader(bytes.NewReader(out)).ReadAll()
	if err != nil || len(rows) < len(d.Results) {
		t.Fatalf("%d rows, error %v", len(rows), err)
	}
	for _, want := range []map[string]string{
		{"transport": `a,"b"??c`, "figure": "p50", "quantity": "time", "unit": "ns", "better": "less", "value": "3900",
			"rate": "", "dims": ""},
		{"figure": "corrected.p999", "value": "4990000"},
		{"figure": "bw", "quantity": "bytes", "unit": "B/s", "better": "more", "value": "192000000"},
		{"figure": "loaded.max", "value": "90000", "dims": "arm=two-qp"},
		{"figure": "service.p50", "value": "3000", "rate": "40000", "arrivals": "poisson"},
	} {
		if !slices.ContainsFunc(rows[1:], func(row []string) bool {
			for i, name := range rows[0] {
				if v, ok := want[name]; ok && v != row[i] {
					return false
				}
			}
			return true
		}) {
			t.Errorf("no row %v", want)
		}
	}
	mark := slices.Index(rows[0], "mark")
	if slices.ContainsFunc(rows[1:], func(row []string) bool { return row[mark] == "few" }) {
		t.Error("a percentile has a row that has too few samples")
	}
	seen := map[string]bool{}
	for _, name := range rows[0] {
		if seen[name] {
			t.Errorf("two columns %q", name)
		}
		seen[name] = true
	}
}

func TestFormatsPrintNoNaNAndNoControlCharacters(t *testing.T) {
	d := formatsDocument()
	evil := "x\x1b[2J\r\n 64 1 1 1 1\u2028"
	d.Error.Message, d.Environment.CPU, d.Environment.Kernel, d.Environment.Hostname = evil, evil, evil, evil
	for i := range d.Results {
		r := &d.Results[i]
		r.Stack, r.Transport, r.Op, r.Polling, r.MeasuredBy = evil, evil, evil, evil, evil
	}
	d.Results[0].Latency.Mean, d.Results[0].Latency.P99 = math.NaN(), math.Inf(1)
	d.Results[7].Throughput = &reports.Throughput{BytesPerSecond: math.Inf(1), OperationsPerSecond: math.NaN()}
	for name, out := range map[string][]byte{"perftest": perftest(t, d, false), "csv": comma(t, d)} {
		for line := range strings.Lines(string(out)) {
			line = strings.TrimRight(line, "\r\n")
			if strings.ContainsFunc(line, unicode.IsControl) || strings.Contains(line, "NaN") ||
				strings.Contains(line, "Inf") {
				t.Errorf("%s: %q", name, line)
			}
		}
	}
}

// Whatever can be read can be printed, compared and exported, or is refused.
func FuzzFormats(f *testing.F) {
	for _, b := range fuzzDocuments(f, goldenDocument(), histogramDocument(), formatsDocument()) {
		f.Add(b)
	}
	f.Add([]byte(`{"schema":"rdmaperf/v1","results":[{"operations":1,"latency":{"count":-1,"p50":1.7e308,"p99":-1},"hol":{},"throughput":null},{"size_bytes":-9223372036854775808}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := reports.ReadDocument(bytes.NewReader(b), workloads)
		if err != nil {
			return
		}
		for name, out := range map[string][]byte{"perftest": perftest(t, d, false), "csv": comma(t, d)} {
			if s := string(out); strings.Contains(s, "NaN") && !bytes.Contains(b, []byte("NaN")) ||
				strings.ContainsAny(s, "\x00\x1b") {
				t.Errorf("%s holds NaN or control characters:\n%q", name, s)
			}
		}
		rows, err := csv.NewReader(bytes.NewReader(comma(t, d))).ReadAll()
		if err != nil || len(rows) < len(d.Results)+1 {
			t.Errorf("%d rows of %d results, error %v", len(rows), len(d.Results), err)
		}
		if c, err := reports.Compare(d, d, []reports.Threshold{threshold(t, "p99>+0%"),
			threshold(t, "errors>+0%")}); err == nil {
			if len(c.Unlike) > 0 {
				t.Errorf("a run is not like itself: %v", c.Unlike)
			}
			if c.WriteJSON(io.Discard) == nil {
				render(t, func(w io.Writer) error { return textformat.WriteComparison(w, c) })
			}
		}
		if g, err := metrics.Gather(d); err == nil {
			if _, err := g.Gather(); err != nil {
				t.Error(err)
			}
		}
		hlog.WriteLog(io.Discard, d)
	})
}

// What others wrote is no formula in a spreadsheet, and no second label or line in metrics.
func TestForeignTextIsNoFormulaAndNoLabel(t *testing.T) {
	for _, c := range []struct{ text, cell string }{
		{`=HYPERLINK("http://x")`, `'=HYPERLINK("http://x")`},
		{"+1+2", "'+1+2"}, {"-2+3", "'-2+3"}, {"@SUM(A1)", "'@SUM(A1)"},
		{"-2", "-2"}, {"+1e3", "+1e3"}, {"plain", "plain"}, {"a=b", "a=b"},
	} {
		d := formatsDocument()
		d.Results = d.Results[:1]
		d.Results[0].Label = c.text
		rows, err := csv.NewReader(bytes.NewReader(comma(t, d))).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range rows[0] {
			if name == "label" && rows[1][i] != c.cell {
				t.Errorf("the cell of %q is %q, want %q", c.text, rows[1][i], c.cell)
			}
		}
	}
	d := formatsDocument()
	d.Results = d.Results[:1]
	d.Results[0].Label = "a\"} 1\nevil{x=\"\\"
	path := filepath.Join(t.TempDir(), "metrics.prom")
	if err := metrics.WriteFile(path, d); err != nil {
		t.Fatal(err)
	}
	out, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(out); strings.Contains(s, "\nevil") || !strings.Contains(s, `label="a\"}`) {
		t.Errorf("labels are not escaped:\n%.2000s", s)
	}
}
