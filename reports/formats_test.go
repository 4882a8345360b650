package reports_test

import (
	"bytes"
	"encoding/csv"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	csvformat "github.com/rdmaperf/rdmaperf/reports/render/csv"
	"github.com/rdmaperf/rdmaperf/reports/render/hlog"
	markdownformat "github.com/rdmaperf/rdmaperf/reports/render/markdown"
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
	transport := slices.Index(rows[0], "transport")
	if rows[1][transport] != `a,"b"??c` {
		t.Errorf("the transport is read as %q", rows[1][transport])
	}
	mark := slices.Index(rows[0], "mark")
	if slices.ContainsFunc(rows[1:], func(row []string) bool { return row[mark] == "few" }) {
		t.Error("a percentile has a row that has too few samples")
	}
	for i, name := range rows[0] {
		if slices.Contains(rows[0][:i], name) {
			t.Errorf("two columns %q", name)
		}
	}
}

// A window of nothing gives no figure, and a message from a peer neither paints the terminal nor forges a line.
func TestFormatsPrintNoNaNAndNoControlCharacters(t *testing.T) {
	d := formatsDocument()
	evil := "x\x1b[2J\r\n 64 1 1 1 1\r\nBenchmarkForged 1 1 ns/op\u2028"
	d.Error.Message, d.Error.Hint, d.Environment.CPU, d.Environment.Kernel, d.Environment.Hostname = evil, evil, evil,
		evil, evil
	for i := range d.Results {
		r := &d.Results[i]
		r.Stack, r.Transport, r.Op, r.Polling, r.MeasuredBy = evil, evil, evil, evil, evil
	}
	d.Results[0].Latency.Mean, d.Results[0].Latency.P99 = math.NaN(), math.Inf(1)
	d.Results[5].Throughput = &reports.Throughput{}
	d.Results[7].Throughput = &reports.Throughput{BytesPerSecond: math.Inf(1), OperationsPerSecond: math.NaN()}
	for name, out := range map[string][]byte{"text": text(t, d, textformat.Options{}), "bench": bench(t, d),
		"perftest": perftest(t, d, false), "csv": comma(t, d)} {
		for line := range strings.Lines(string(out)) {
			line = strings.TrimRight(line, "\r\n")
			if strings.ContainsFunc(line, unicode.IsControl) || strings.Contains(line, "NaN") ||
				strings.Contains(line, "Inf") || strings.HasPrefix(line, "BenchmarkForged") {
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
		hlog.WriteFiles(t.TempDir(), d)
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
		rows := must(csv.NewReader(bytes.NewReader(comma(t, d))).ReadAll())(t)
		if got := rows[1][slices.Index(rows[0], "label")]; got != c.cell {
			t.Errorf("the cell of %q is %q, want %q", c.text, got, c.cell)
		}
	}
	d := formatsDocument()
	d.Results = d.Results[:1]
	d.Results[0].Label = "a\"} 1\nevil{x=\"\\"
	path := filepath.Join(t.TempDir(), "metrics.prom")
	noError(t, metrics.WriteFile(path, d))
	out := must(os.ReadFile(path))(t)
	contains(t, string(out), `label="a\"}`)
	lacks(t, string(out), "\nevil")
}

func markdown(t *testing.T, o pages.Options, docs ...*reports.Document) string {
	t.Helper()
	return string(render(t, func(w io.Writer) error { return markdownformat.Write(w, docs, o) }))
}

func TestMarkdownGolden(t *testing.T) {
	golden(t, "report.md", []byte(markdown(t, pages.Options{Conformance: records(t)}, goldenDocument())))
	c := compare(t, repeated(100, 101, 102, 103, 104, 105), repeated(110, 111, 112, 113, 114, 115), "p50>+5%")
	golden(t, "compare.md", render(t, func(w io.Writer) error { return markdownformat.WriteComparison(w, c) }))
}

var (
	unescapedBar = regexp.MustCompile(`(?:^|[^\\])\|`)
	liveMarkup   = regexp.MustCompile("[^\\\\][<`\\[]")
)

// Every row of a table has the cells of its head, whatever the names hold.
func TestMarkdownTablesAreWhole(t *testing.T) {
	d := goldenDocument()
	d.Results[0].Stack = "a|b\n| c `d` <img src=x> @someone [e](f) \\"
	cases := []pages.CaseResult{{ID: "x|y", Transport: "t|\r\n|", Verdict: "fail", Got: "a | b\n\n# c"}}
	text := markdown(t, pages.Options{Conformance: cases}, d)
	head := -1
	for n, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			head = -1
			if strings.HasPrefix(line, "# ") {
				t.Errorf("line %d is a heading: %q", n+1, line)
			}
			continue
		}
		// A name ends in a backslash: escaped, it escapes no bar.
		bars := len(unescapedBar.FindAllString(strings.ReplaceAll(line, `\\`, ""), -1))
		if head < 0 {
			head = bars
		}
		if bars != head {
			t.Errorf("line %d has %d bars, its head %d: %q", n+1, bars, head, line)
		}
	}
	own := strings.NewReplacer(`\\`, "", "\n<details><summary>Figures</summary>", "", "\n</details>", "")
	if m := liveMarkup.FindString(own.Replace(text)); m != "" {
		t.Errorf("%q of a name is markup", m)
	}
	lacks(t, text, "@someone")
}

// A page of conformance alone has the matrix and nothing that needs a run.
func TestConformanceStandsAlone(t *testing.T) {
	o := pages.Options{Conformance: records(t)}
	html := page(t, o)
	contains(t, html, "Conformance of ", `id="conformance"`)
	lacks(t, html, "How to reproduce", "There are no results")
	wellFormed(t, html)
}

// A transport that did not run is no good sign, however many cases passed.
func TestNotRunIsNoPass(t *testing.T) {
	cases := must(pages.ReadConformance(strings.NewReader(`{"id":"a/b","transport":"verbs","verdict":"pass"}
{"id":"a/c","transport":"verbs","verdict":"notrun","evidence":"no device"}`)))(t)
	contains(t, markdown(t, pages.Options{Conformance: cases}),
		"- ! Conformance of verbs: 1 passed, 0 failed, 1 did not run.", "no device")
}
