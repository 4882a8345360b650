package reports_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"io"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	htmlformat "github.com/rdmaperf/rdmaperf/reports/render/html"
)

// distribution makes a fixed histogram once for all tests; the value is the caller's.
func distribution(n int, base, slope, tail float64) *reports.Latency {
	key := [4]float64{float64(n), base, slope, tail}
	made, ok := distributions.Load(key)
	if !ok {
		r := reports.NewRecorder()
		for i := range n {
			q := (float64(i) + 0.5) / float64(n)
			r.Record(int64(base * (1 + slope*q + tail*math.Pow(1-q, -0.45)/100)))
		}
		made, _ = distributions.LoadOrStore(key, r.Snapshot())
	}
	l := made.(reports.Latency)
	return &l
}

var distributions sync.Map

// showcase is one document with everything that a page can show.
func showcase() *reports.Document {
	memlock := int64(8 << 20)
	d := &reports.Document{
		Started: time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC),
		Command: []string{"rdmaperf", "run", "--transport", "tcp,iwarp", "--json", "my results.json"},
		Environment: reports.Environment{Version: "v1.0.0", Go: "go1.26", OS: "linux", Arch: "amd64", Hostname: "lab1",
			Kernel: "6.18.0",
			CPU:    "Example 9000", CPUs: 8, Hypervisor: true, Governors: []string{"performance", "powersave"},
			MemlockBytes: &memlock},
	}
	for i, stack := range []string{"tcp(nodelay)", "iwarp(crc)", "sched(strict,slice=16KiB)+iwarp(crc)"} {
		f := 1 + 0.35*float64(i)
		point := func(workload, op string, size int64, depth int) reports.Result {
			return reports.Result{Stack: stack, Transport: strings.Split(stack, "(")[0], Label: reports.LabelSoft,
				Workload: workload, Op: op, SizeBytes: size, Depth: depth, QPs: 1, Threads: 1,
				Polling: reports.PollingBusy, MeasuredBy: "client", DurationNs: 3e9, Operations: 20_000, Verified: true,
				CPU: &reports.CPU{ClientSeconds: 2.9, ServerSeconds: 2.7}, GC: &reports.GC{},
				Parameters: map[string]any{"seed": 7, "warmup_ns": 200_000_000,
					"client": map[string]any{"cpu": i, "stack": stack}}}
		}
		h := point("hol", "write", 64, 1)
		h.RoundTrip = reports.RoundTripFull
		h.Detail = &probes{BulkSizeBytes: 1 << 20, ProbeSizeBytes: 64, ProbeAlone: *distribution(20_000, 5200*f, 0.2,
			4), ProbeLoaded: *distribution(20_000, 5200*f*(90-40*float64(i)), 1.2, 9),
			BulkAloneBytesPerSecond: 3.1e9 / f, BulkLoadedBytesPerSecond: 2.9e9 / f}
		h.Series = &reports.Series{IntervalNs: 5e8}
		for k := range int64(6) {
			y := probesOf(&h).ProbeLoaded.P50 * (1 + 0.1*float64(k%3))
			pt := reports.SeriesPoint{OffsetNs: k * 5e8, Operations: 3000, P50: y, P99: y * 1.7, Max: y * 4}
			if i == 1 && k == 3 {
				pt = reports.SeriesPoint{OffsetNs: k * 5e8} // the stream stood still
			}
			h.Series.Points = append(h.Series.Points, pt)
		}
		d.Results = append(d.Results, h)
		for _, size := range []int64{64, 1 << 10, 16 << 10, 256 << 10} {
			r := point("latency", "send", size, 1)
			r.RoundTrip = reports.RoundTripHalf
			r.Latency = distribution(20_000, f*(2600+float64(size)/4), 0.15, 6)
			d.Results = append(d.Results, r)
			t := point("throughput", "write", size, 16)
			t.Throughput = reports.NewThroughput(int64(3e9/f*3*float64(size)/float64(size+20_000)),
				int64(9e9/f/float64(size+20_000)), 3*time.Second)
			if size > 1<<10 {
				t.Throughput.PeakBytesPerSecond, t.Throughput.PeakOverNs = 1.1*t.Throughput.BytesPerSecond, 16_000_000
			}
			d.Results = append(d.Results, t)
		}
		for _, rate := range []float64{10e3, 20e3, 40e3, 80e3} {
			r := point("latency", "write", 64, 1)
			r.RoundTrip = reports.RoundTripFull
			r.Rate, r.Arrivals = rate, "constant"
			r.Latency = distribution(20_000, 3000*f/(1-rate*f/150e3), 0.3, 5*rate/1e4)
			r.Throughput = &reports.Throughput{OperationsPerSecond: rate * 0.99, BytesPerSecond: rate * 64}
			d.Results = append(d.Results, r)
		}
	}
	d.Answer = showcaseAnswer()
	return of(d)
}

// showcaseAnswer is what the document shows, by hand.
func showcaseAnswer() *reports.Answer {
	a := &reports.Answer{Comparisons: 9, Undecided: 2, Confidence: 0.9944, Omitted: 1,
		Columns: []reports.AnswerColumn{
			{Title: "half round trip", Point: "64 B send", Figure: "p50", Unit: "ns"},
			{Title: "bulk rate", Point: "256 KiB write", Figure: "bw", Unit: "B/s", Better: reports.More},
			{Title: "probe beside bulk", Point: "64 B read", Figure: "loaded.p50", Unit: "ns"}},
		Reliance: []string{"Threads waited for a CPU in 3 of 39 measurements: differences under 1.2x are not shown here"},
		Conclusions: []reports.Conclusion{
			{Topic: reports.TopicSmall, Text: "iwarp takes 1.35x as long as tcp for a 64 B message (1.3 to 1.4x)",
				Stack: "iwarp", Base: "tcp", AnswerRatio: reports.AnswerRatio{Factor: 0.74}},
			{Topic: reports.TopicBoth, Text: "sched answers a probe beside bulk 5x sooner than iwarp (4.5 to 5.5x), at " +
				"0.95x of the bulk's rate", Stack: "sched", Base: "iwarp", AnswerRatio: reports.AnswerRatio{Factor: 5}}}}
	for i, stack := range []string{"tcp", "iwarp", "sched"} {
		row := reports.AnswerRow{Stack: stack}
		for k, v := range []float64{2600, 2.8e9, 468_000} {
			if v *= 1 + 0.35*float64(i); k == 1 && i == 2 {
				row.Cells = append(row.Cells, nil)
				continue
			}
			row.Cells = append(row.Cells, &reports.AnswerCell{Value: v, Within: &[2]float64{0.9 * v, 1.2 * v}, Rounds: 24})
		}
		a.Rows = append(a.Rows, row)
	}
	return a
}

const showcaseRecords = `{"id":"ord/write-then-read","clause":"RFC 5040 5.5","level":"must","transport":"mem","verdict":"pass","seed":1}
{"id":"ord/write-then-read","clause":"RFC 5040 5.5","level":"must","transport":"iwarp","verdict":"fail","want":["completion status success"],"got":"flushed","evidence":"after 3 of 64 reads"}
{"id":"ord/fence","clause":"IBTA 10.8","level":"should","transport":"mem","verdict":"xfail","ledger":"known; see the provider's notes"}

{"id":"atomic/add","clause":"RFC 7306 5","level":"may","transport":"mem","verdict":"pass"}
{"id":"atomic/add","clause":"RFC 7306 5","level":"may","transport":"iwarp","verdict":"unsupported","evidence":"no capability atomic"}
`

func records(t *testing.T) []pages.CaseResult {
	t.Helper()
	return must(pages.ReadConformance(strings.NewReader(showcaseRecords)))(t)
}

func page(t *testing.T, o pages.Options, docs ...*reports.Document) string {
	t.Helper()
	return string(render(t, func(w io.Writer) error { return htmlformat.Write(w, docs, o) }))
}

func TestHTMLGolden(t *testing.T) {
	golden(t, "report.html", []byte(page(t, pages.Options{Conformance: records(t)}, showcase())))
}

// What a page refers to it would have to load; this one must be complete.
func TestHTMLReferencesNothing(t *testing.T) {
	p := page(t, pages.Options{Conformance: records(t)}, showcase())
	for _, pattern := range []string{`(?i)https?:`, `(?i)\bsrc\s*=`, `(?i)\burl\(`, `(?i)@import`,
		`(?i)<(link|iframe|object|embed|img|base|form)\b`, `(?i)\b(fetch|XMLHttpRequest|WebSocket|import)\b\s*\(`,
		`href="[^#]`} {
		if found := regexp.MustCompile(pattern).FindString(p); found != "" {
			t.Errorf("the page holds %q, which %s matches", found, pattern)
		}
	}
}

func TestHTMLPolicyAllowsOnlyItsOwnStyleAndScript(t *testing.T) {
	p := page(t, pages.Options{}, showcase())
	contains(t, p, `http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; `)
	lacks(t, p, "unsafe")
	for _, element := range []string{"style", "script"} {
		found := regexp.MustCompile(`(?s)<`+element+`>(.*?)</`+element+`>`).FindAllStringSubmatch(p, -1)
		if len(found) != 1 {
			t.Fatalf("%d %s elements, want 1", len(found), element)
		}
		sum := sha256.Sum256([]byte(found[0][1]))
		hash := strings.ReplaceAll(base64.StdEncoding.EncodeToString(sum[:]), "+", "&#43;")
		contains(t, p, element+"-src &#39;sha256-"+hash+"&#39;")
	}
	if found := regexp.MustCompile(`<[^>]*\s(style|on[a-z]+)\s*=`).FindString(p); found != "" {
		t.Errorf("%s would need a wider policy", found)
	}
}

// hostile is what a peer or a file might send as a name.
const hostile = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>\u202e\x00\x1b[31m{{.}}&amp;</style></svg>"

func hostileDocument() *reports.Document {
	d := showcase()
	d.Command = []string{"rdmaperf", hostile}
	d.Environment.Hostname, d.Environment.CPU, d.Environment.Kernel = hostile, hostile, hostile
	d.Environment.Details = map[string]string{hostile: hostile}
	d.ServerEnvironment = &d.Environment
	d.Error = &reports.RunError{Operation: hostile, Message: hostile, Hint: hostile, ExitCode: 1}
	for i := range d.Results {
		r := &d.Results[i]
		r.Stack, r.Label, r.Workload, r.Op, r.Polling, r.RoundTrip, r.MeasuredBy = hostile+r.Stack, hostile, hostile,
			hostile, hostile, hostile, hostile
		if probesOf(r) != nil {
			probesOf(r).Arm = hostile
		}
		r.Arrivals, r.Parameters[hostile] = hostile, []any{hostile, map[string]any{hostile: hostile}}
	}
	return of(d)
}

func TestHTMLEscapesWhatOthersWrote(t *testing.T) {
	cases := []pages.CaseResult{{ID: hostile, Clause: hostile, Level: hostile, Transport: hostile, Verdict: hostile,
		Want: []string{hostile}, Got: hostile, Evidence: hostile, Ledger: hostile}}
	p := page(t, pages.Options{Names: []string{hostile, "b" + hostile}, Conformance: cases}, hostileDocument(),
		hostileDocument())
	if n := strings.Count(p, "<script"); n != 1 {
		t.Errorf("%d script elements, want 1", n)
	}
	lacks(t, p, "<img", "\u202e", "\x00", "\x1b", "</style></svg>")
	wellFormed(t, p)
}

// wellFormed holds the page against the rules that XML and HTML share, and against what a screen reader needs.
func wellFormed(t *testing.T, p string) {
	t.Helper()
	p = regexp.MustCompile(`(?s)<(style|script)>.*?</(style|script)>`).ReplaceAllString(p, "")
	d := xml.NewDecoder(strings.NewReader(p))
	d.Entity = xml.HTMLEntity
	ids, wanted, count := map[string]bool{}, []string{}, map[string]int{}
	for {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("not well formed: %v", err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		count[e.Name.Local]++
		has := map[string]string{}
		for _, a := range e.Attr {
			has[a.Name.Local] = a.Value
			switch a.Name.Local {
			case "id":
				if ids[a.Value] {
					t.Errorf("id %q twice", a.Value)
				}
				ids[a.Value] = true
			case "aria-labelledby":
				wanted = append(wanted, strings.Fields(a.Value)...)
			case "href":
				wanted = append(wanted, strings.TrimPrefix(a.Value, "#"))
			}
		}
		switch {
		case e.Name.Local == "th" && has["scope"] == "":
			t.Error("a heading cell without scope")
		case e.Name.Local == "svg" && (has["role"] != "img" || len(strings.Fields(has["aria-labelledby"])) != 2):
			t.Error("a drawing without role, title and description")
		}
	}
	for _, id := range wanted {
		if !ids[id] {
			t.Errorf("reference to %q, which is not there", id)
		}
	}
	for _, name := range []string{"main", "header", "nav", "footer", "h1"} {
		if count[name] != 1 {
			t.Errorf("%d <%s>, want 1", count[name], name)
		}
	}
	if count["table"] != count["caption"] {
		t.Errorf("%d tables with %d captions", count["table"], count["caption"])
	}
	if count["svg"] != count["figure"] {
		t.Errorf("%d figures with %d drawings", count["figure"], count["svg"])
	}
}

func TestHTMLIsWellFormed(t *testing.T) {
	wellFormed(t, page(t, pages.Options{Conformance: records(t)}, showcase()))
	wellFormed(t, page(t, pages.Options{}, goldenDocument()))
	wellFormed(t, page(t, pages.Options{}, &reports.Document{}))
	wellFormed(t, page(t, pages.Options{}))
}

func TestHTMLIsDeterministicAndSmall(t *testing.T) {
	d := showcase()
	d.Results = d.Results[:20]
	first := page(t, pages.Options{Conformance: records(t)}, d)
	for range 3 {
		if page(t, pages.Options{Conformance: records(t)}, d) != first {
			t.Fatal("the same document gave another page")
		}
	}
	if len(first) >= 1<<20 {
		t.Errorf("20 results take %d bytes, want less than 1 MiB", len(first))
	}
}

func TestHTMLNeverPrintsWhatIsNoNumber(t *testing.T) {
	d := showcase()
	nan, inf := math.NaN(), math.Inf(1)
	for i := range d.Results {
		r := &d.Results[i]
		if r.Latency != nil {
			*r.Latency = reports.Latency{Count: 5, Min: nan, P50: inf, P90: nan, P99: inf, P999: nan, P9999: -1,
				Max: inf, Mean: nan, StdDev: inf, HDR: "broken"}
		}
		if r.Throughput != nil {
			r.Throughput = &reports.Throughput{BytesPerSecond: nan, OperationsPerSecond: inf}
		}
		if probesOf(r) != nil {
			r.Detail = &probes{BulkAloneBytesPerSecond: nan, BulkLoadedBytesPerSecond: inf}
		}
	}
	p := page(t, pages.Options{}, d)
	wellFormed(t, p)
	if found := regexp.MustCompile(`.{0,40}\b(NaN|Inf)\b.{0,20}`).FindString(p); found != "" {
		t.Errorf("the page says %q", found)
	}
}

// section cuts one section out of a page.
func section(t *testing.T, p, id string) string {
	t.Helper()
	_, rest, found := strings.Cut(p, `<section id="`+id+`"`)
	if !found {
		return ""
	}
	text, _, _ := strings.Cut(rest, "</section>")
	return text
}

// The page begins with what a reader must know of all.
func TestHTMLBeginsWithWarnings(t *testing.T) {
	d := showcase()
	d.Results[0].Errors, d.Results[1].Verified = 3, false
	d.Error = &reports.RunError{Operation: "measure", Message: "peer went away", ExitCode: 5}
	v := section(t, page(t, pages.Options{}, d), "answer")
	contains(t, v, "3 failed operations.", "1 of 39 measurements were not verified",
		"Run ended early: measure: peer went away")
}

func TestHTMLShowsASectionOnlyForWhatIsThere(t *testing.T) {
	d := showcase()
	d.Results = d.Results[1:2] // one latency point
	p := page(t, pages.Options{}, d)
	for _, id := range []string{"hol", "sizes", "throughput", "load", "time", "conformance"} {
		if section(t, p, id) != "" {
			t.Errorf("section %s without anything to show", id)
		}
	}
	contains(t, p, "<h1>Latency of tcp</h1>")
}

func TestHTMLNamesRepeatsAndBreaksTheLineAtAPause(t *testing.T) {
	d := showcase()
	d.Results = d.Results[13:14] // the second stack's head-of-line result
	again := d.Results[0]
	d.Results[0].Repeat, again.Repeat = 1, 2
	d.Results = append(d.Results, again)
	p := page(t, pages.Options{}, d)
	contains(t, p, "iwarp(crc), repeat 1", "iwarp(crc), repeat 2")
	chart := section(t, p, "time")
	lines := regexp.MustCompile(`<path d="(M[^"]*L[^"]*)" class="ln" data-l="1"/>`).FindAllStringSubmatch(chart, -1)
	if len(lines) != 4 {
		t.Fatalf("%d lines over time, want p50 and p99 of two repeats", len(lines))
	}
	for _, l := range lines {
		if n := strings.Count(l[1], "M"); n != 2 {
			t.Errorf("a line of %d pieces, want 2 around the pause: %s", n, l[1])
		}
	}
}

func TestHTMLKeepsDocumentsApart(t *testing.T) {
	p := page(t, pages.Options{Names: []string{"x/old.json", "x/new.json"}}, showcase(), showcase())
	contains(t, p, "iwarp(crc) · old.json", "iwarp(crc) · new.json")
	lacks(t, page(t, pages.Options{Names: []string{"x/old.json"}}, showcase()), "· old.json") // of a single document
}

func TestReadConformanceRefusesWhatIsNoRecord(t *testing.T) {
	for _, in := range []string{"{", "[]", `{"id":"a/b"}`, "{}\n"} {
		if _, err := pages.ReadConformance(strings.NewReader(in)); err == nil ||
			!strings.Contains(err.Error(), "line 1") {
			t.Errorf("%q: error %v, want one that names line 1", in, err)
		}
	}
	if got := records(t); len(got) != 5 || got[1].Want[0] != "completion status success" {
		t.Errorf("records %+v", got)
	}
}

// Whatever the files contain, the page has one script, and it is ours.
func FuzzWriteHTML(f *testing.F) {
	for _, b := range fuzzDocuments(f, goldenDocument()) {
		f.Add(b, []byte(`{"id":"ord/write","transport":"mem","verdict":"pass"}`))
	}
	f.Add([]byte(`{"schema":"rdmaperf/v1","results":[{"stack":"</script><script>","latency":{"count":-1,"hdr":"x"},"hol":{},"rate":-5,"throughput":{}}]}`), []byte(`{"id":"<script>","transport":"</table>","verdict":"x"}`))
	f.Fuzz(func(t *testing.T, document, lines []byte) {
		d, err := reports.ReadDocument(bytes.NewReader(document), workloads)
		if err != nil {
			return
		}
		cases, _ := pages.ReadConformance(bytes.NewReader(lines)) // nil of what is none
		var page strings.Builder
		noError(t, htmlformat.Write(&page, []*reports.Document{d}, pages.Options{Conformance: cases}))
		if n := strings.Count(strings.ToLower(page.String()), "<script"); n != 1 {
			t.Errorf("%d script elements, want 1", n)
		}
		if !strings.HasSuffix(page.String(), "</html>\n") {
			t.Error("the page has no end")
		}
	})
}
