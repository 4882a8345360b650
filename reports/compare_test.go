package reports_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rdmaperf/rdmaperf/reports"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

func compare(t *testing.T, old, new *reports.Document, thresholds ...string) *reports.Comparison {
	t.Helper()
	var ths []reports.Threshold
	for _, s := range thresholds {
		ths = append(ths, threshold(t, s))
	}
	return must(reports.Compare(old, new, ths))(t)
}

// repeated is a run of one point per p50 given.
func repeated(p50s ...float64) *reports.Document {
	d := goldenDocument()
	base := d.Results[0]
	d.Error, d.Results = nil, nil
	for _, p50 := range p50s {
		r := base
		r.Latency = latency(600_000, p50)
		r.Parameters = map[string]any{"repeat": len(d.Results), "seed": p50}
		d.Results = append(d.Results, r)
	}
	return of(d)
}

// A comparison fits a terminal of 80 columns, and what its test cannot tell stands once below it and not in every row.
func TestComparisonFitsATerminal(t *testing.T) {
	old, new := repeated(90, 95, 125), repeated(110, 125, 126)
	c := compare(t, old, new)
	var out bytes.Buffer
	noError(t, textformat.WriteComparison(&out, c))
	for l := range strings.Lines(out.String()) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(l, "\n")); n > 80 {
			t.Errorf("%d columns: %q", n, l)
		}
	}
	if s := out.String(); strings.Count(s, "fewer than 4 repeats a side") != 1 || !strings.Contains(s, "n=3*\n") {
		t.Errorf("the footnote:\n%s", s)
	}
}

func findChange(t *testing.T, c *reports.Comparison, figure string) reports.Change {
	t.Helper()
	for _, ch := range c.Points[0].Changes {
		if ch.Figure == figure {
			return ch
		}
	}
	t.Fatalf("no figure %s in %+v", figure, c.Points[0])
	return reports.Change{}
}

// Six against six with no overlap: of the 924 ways to deal twelve values, two are as extreme, so p is 2/924.
func TestCompareTestsRepeats(t *testing.T) {
	join := func(p50s ...float64) *reports.Document {
		var docs []*reports.Document
		for _, p50 := range p50s {
			docs = append(docs, repeated(p50))
		}
		return must(reports.Join(docs))(t)
	}
	for what, run := range map[string]func(p50s ...float64) *reports.Document{"one run": repeated, "joined": join} {
		c := compare(t, run(100, 101, 102, 103, 104, 105), run(110, 111, 112, 113, 114, 115))
		ch := findChange(t, c, "p50")
		if len(c.Points) != 1 || ch.OldN != 6 || ch.NewN != 6 || ch.Old != 102.5 || ch.New != 112.5 {
			t.Errorf("%s: %d points, %+v, want one of medians 102.5 and 112.5 over 6", what, len(c.Points), ch)
		}
		if ch.P == nil || math.Abs(*ch.P-2./924) > 1e-9 || !ch.Significant || ch.Percent == nil ||
			math.Abs(*ch.Percent-1000/102.5) > 1e-9 {
			t.Errorf("%s: p %v, significant %v, percent %v, want 2/924, true, 9.756", what, ch.P, ch.Significant, ch.Percent)
		}
	}
	ch := findChange(t, compare(t, repeated(100, 103, 104), repeated(101, 102, 105)), "p50")
	if ch.P == nil || *ch.P < 0.5 || ch.Significant {
		t.Errorf("values mixed up: %+v, want no significance", ch)
	}
	for _, k := range []struct {
		old, new *reports.Document
		want     string
	}{
		{repeated(100), repeated(110), "no test: one sample each"},
		{repeated(100), repeated(110, 111), "no test: 1 and 2 samples"},
	} {
		if ch := findChange(t, compare(t, k.old, k.new), "p50"); ch.P != nil || ch.Significant || ch.Test != k.want {
			t.Errorf("%+v, want %q", ch, k.want)
		}
	}
}

func TestCompareRefusesUnlikeRuns(t *testing.T) {
	for name, k := range map[string]struct {
		alter func(d *reports.Document)
		want  string
	}{
		"cpu": {func(d *reports.Document) { d.Environment.CPU = "Other CPU" },
			"cpu: old Example CPU @ 2.30GHz, new Other CPU"},
		"kernel": {func(d *reports.Document) { d.Environment.Kernel = "6.13.0" }, "kernel: old 6.12.9, new 6.13.0"},
		"governor": {func(d *reports.Document) { d.Environment.Governors = nil },
			"governors: old performance, new none"},
		"vm": {func(d *reports.Document) { d.Environment.Hypervisor = false },
			"virtual machine: old true, new false"},
		"procs": {func(d *reports.Document) { d.Environment.GOMAXPROCS = 1 }, "gomaxprocs: old 2, new 1"},
		"server": {func(d *reports.Document) { e := d.Environment; d.ServerEnvironment = &e },
			"server: old this machine, new another machine"},
		"label": {func(d *reports.Document) { d.Results[0].Label = "device" },
			"tcp latency send 64: label: old soft, new device"},
		"polling": {func(d *reports.Document) { d.Results[0].Polling = "event" },
			"tcp latency send 64: polling: old busy, new event"},
		"verified": {func(d *reports.Document) { d.Results[0].Verified = false },
			"tcp latency send 64: verified: old true, new false"},
		"threads": {func(d *reports.Document) { d.Results[0].Threads = 2 },
			"tcp latency send 64: threads: old 1, new 2"},
		"trip": {func(d *reports.Document) { d.Results[0].RoundTrip = "full" },
			"tcp latency send 64: round trip: old half, new full"},
		"loop": {func(d *reports.Document) { d.Results[0].Parameters["loop"] = "provider" },
			"tcp latency send 64: loop: old none, new provider"},
		"inline": {func(d *reports.Document) { d.Results[0].Parameters["inline_bytes"] = 64 },
			"tcp latency send 64: parameter inline_bytes: old none, new 64"},
	} {
		d := repeated(100)
		k.alter(d)
		c := compare(t, repeated(100), d)
		if len(c.Unlike) != 1 || c.Unlike[0].String() != k.want || len(c.Points) != 1 {
			t.Errorf("%s: %v, %d points, want %q and one point", name, c.Unlike, len(c.Points), k.want)
		}
	}
	servers := func(cpus ...string) func(a, b *reports.Document) {
		return func(a, b *reports.Document) {
			for i, cpu := range cpus {
				e := a.Environment
				e.CPU = cpu
				[]*reports.Document{a, b}[i].ServerEnvironment = &e
			}
		}
	}
	for name, k := range map[string]struct {
		alter func(a, b *reports.Document)
		want  string // "": alike
	}{
		"a new version": {func(_, b *reports.Document) {
			b.Environment.Version, b.Environment.Go, b.Results[0].DurationNs = "v0.2.0", "go1.27", 1e9
		}, ""},
		"a number from memory and from a file": {func(a, b *reports.Document) {
			a.Results[0].Parameters["recv_depth"], b.Results[0].Parameters["recv_depth"] = 64, 64.0
		}, ""},
		"the former name of the loop": {func(a, b *reports.Document) {
			a.Results[0].Parameters["volleys"], b.Results[0].Parameters["loop"] = true, "provider"
		}, ""},
		"that of the other loop": {func(a, b *reports.Document) {
			a.Results[0].Parameters["volleys"], b.Results[0].Parameters["loop"] = false, "plain"
		}, ""},
		"another loop": {func(a, b *reports.Document) {
			a.Results[0].Parameters["volleys"], b.Results[0].Parameters["loop"] = true, "plain"
		}, "tcp latency send 64: loop: old provider, new plain"},
		"another loop than plain": {func(a, b *reports.Document) {
			a.Results[0].Parameters["volleys"], b.Results[0].Parameters["loop"] = false, "provider"
		}, "tcp latency send 64: loop: old plain, new provider"},
		"the same server":    {servers("A", "A"), ""},
		"another server":     {servers("A", "B"), "server cpu: old A, new B"},
		"no server any more": {servers("A"), "server: old another machine, new this machine"},
	} {
		a, b := repeated(100), repeated(100)
		k.alter(a, b)
		if c := compare(t, a, b); len(c.Unlike) > 1 || (len(c.Unlike) == 1) != (k.want != "") ||
			k.want != "" && c.Unlike[0].String() != k.want {
			t.Errorf("%s: unlike %v, want %q", name, c.Unlike, k.want)
		}
	}
}

// What an interrupt ended is named and not compared; what is complete is.
func TestCompareTakesWhatIsComplete(t *testing.T) {
	d := repeated(100, 110)
	d.Results[1].SizeBytes, d.Results[1].Interrupted = 128, true
	c := compare(t, d, repeated(100))
	if len(c.Points) != 1 || len(c.Unlike)+len(c.OnlyOld) > 0 ||
		!slices.Equal(c.OnlyLines(), []string{"interrupted, and not compared: old: tcp latency send 128"}) {
		t.Errorf("%d points, unlike %v, lines %q", len(c.Points), c.Unlike, c.OnlyLines())
	}
}

// Points differ in what a reader would call another point.
func TestComparePairs(t *testing.T) {
	for name, alter := range map[string]func(r *reports.Result){
		"size":     func(r *reports.Result) { r.SizeBytes = 128 },
		"op":       func(r *reports.Result) { r.Op = "write" },
		"stack":    func(r *reports.Result) { r.Stack = "iwarp" },
		"depth":    func(r *reports.Result) { r.Depth = 2 },
		"qps":      func(r *reports.Result) { r.QPs = 2 },
		"rate":     func(r *reports.Result) { r.Rate = 20000 },
		"arrivals": func(r *reports.Result) { r.Arrivals = "poisson" },
		"arm":      func(r *reports.Result) { withProbes(r, &probes{Arm: "two-qp"}) },
		"path":     func(r *reports.Result) { r.Impairment = "loss=1%" },
		"work":     func(r *reports.Result) { r.AppWorkNs = 5000 },
		"run":      func(r *reports.Result) { r.Parameters = map[string]any{"run": "pinned"} },
		"bulk":     func(r *reports.Result) { withProbes(r, &probes{BulkSizeBytes: 1 << 20}) },
	} {
		d := repeated(100, 100)
		alter(&d.Results[1])
		c := compare(t, d, repeated(100))
		if len(c.Points) != 1 || len(c.OnlyOld) != 1 || len(c.OnlyNew) != 0 || len(c.Unlike) != 0 {
			t.Errorf("%s: %d points, only old %q, only new %q, unlike %v", name, len(c.Points), c.OnlyOld, c.OnlyNew,
				c.Unlike)
		}
		alter(&d.Results[0])
		if _, err := reports.Compare(d, repeated(100), nil); !errors.Is(err, reports.ErrNothingInCommon) {
			t.Errorf("%s: error %v, want ErrNothingInCommon", name, err)
		}
	}
	worse, lossy := repeated(100), repeated(100)
	worse.Results[0].Impairment, lossy.Results[0].Impairment = "loss=5%", "loss=1%"
	if _, err := reports.Compare(lossy, worse, nil); !errors.Is(err, reports.ErrNothingInCommon) {
		t.Errorf("two impairments are one point: %v", err)
	}
	// Both ways of polling in both runs: each finds its like.
	d, e := repeated(100, 200), repeated(201, 101)
	d.Results[1].Polling, e.Results[0].Polling = "event", "event"
	c := compare(t, d, e)
	if len(c.Unlike) != 0 || len(c.Points) != 2 || c.Points[0].Changes[0].New != 101 ||
		c.Points[1].Changes[0].New != 201 {
		t.Errorf("unlike %v, points %+v", c.Unlike, c.Points)
	}
	d = repeated(100)
	d.Results[0].Operations = 0
	if _, err := reports.Compare(d, d, nil); !errors.Is(err, reports.ErrNothingInCommon) {
		t.Errorf("a result without operations is a point: %v", err)
	}
}

// Names are short, and tell every two points of a run apart.
func TestComparePointNames(t *testing.T) {
	d := repeated(100, 100, 100, 100)
	d.Results[1].Rate, d.Results[1].Arrivals = 20_000, "poisson"
	withProbes(&d.Results[2], &probes{Arm: "two-qp", BulkSizeBytes: 64, ProbeSizeBytes: 8, ProbeIntervalNs: 500_000})
	withProbes(&d.Results[3], &probes{BulkSizeBytes: 1 << 20, ProbeSizeBytes: 8})
	names := view.Each(compare(t, d, d).Points, func(p reports.ComparedPoint) string { return p.Point })
	want := []string{"tcp latency send 64", "tcp latency send 64 rate=20000 arrivals=poisson",
		"tcp latency send 64 arm=two-qp bulk_size=64 probe_size=8 probe_interval=500µs",
		"tcp latency send 64 bulk_size=1M probe_size=8"}
	same(t, "names", want, names)
}

func TestCompareThresholds(t *testing.T) {
	const one = " (tcp latency send 64, 1 of 1 point; no test: one sample each)"
	failed := repeated(100)
	failed.Results[0].Errors = 2
	for _, k := range []struct {
		old, new        *reports.Document
		threshold, want string
	}{
		{repeated(100), repeated(110), "p50>+10%", ""},
		{repeated(100), repeated(111), "p50>+10%",
			"failed: p50 100ns to 111ns, +11.00%, limit: fail if >+10%" + one},
		{repeated(100), repeated(80), "p50>+10%", ""},
		{repeated(100), repeated(80), "p50<-10%",
			"failed: p50 100ns to 80ns, -20.00%, limit: fail if <-10%" + one},
		{repeated(100), repeated(111), "p99.9>1ms", ""},
		{repeated(100), repeated(111), "p99.9>440ns",
			"failed: p99.9 400ns to 444ns, +11.00%, limit: fail if >440ns" + one},
		{repeated(100), failed, "errors>+10%",
			"failed: errors 0 to 2, from zero, limit: fail if >+10%" + one},
		{repeated(100), repeated(100), "errors>+10%", ""},
		{repeated(100), repeated(100), "loaded.p99>+10%",
			"failed: no point of both runs has a loaded.p99, limit: fail if >+10%"},
	} {
		c := must(reports.Compare(k.old, k.new, []reports.Threshold{threshold(t, k.threshold).ByMedians()}))(t)
		if got := strings.Join(c.Missed, "\n"); got != k.want || len(c.Undecided) > 0 {
			t.Errorf("%s: %q, want %q; undecided %q", k.threshold, got, k.want, c.Undecided)
		}
	}
}

// Evidence is both: a change that is beyond the limit, and that the test tells from chance.
func TestThresholdTakesSizeAndSignificance(t *testing.T) {
	base := repeated(100, 101, 102, 103, 104)
	for _, k := range []struct {
		name              string
		old, new          *reports.Document
		missed, undecided string
	}{
		{"large and significant", base, repeated(120, 121, 122, 123, 124), "; p=0.008 n=5)", ""},
		{"significant and small", base, repeated(105, 106, 107, 108, 109), "", ""},
		{"large, and could be chance", base, repeated(90, 95, 125, 126, 127), "",
			"; p=0.690 n=5, could be chance)"},
		{"too few to tell", repeated(100, 101, 102), repeated(120, 121, 122), "",
			"no test finds fewer than 4 repeats a side significant"},
		{"one each", repeated(100), repeated(120), "", "no test: one sample each, and no test finds"},
		{"enough to tell, and could be chance", repeated(100, 101, 102, 103), repeated(90, 121, 122, 123), "",
			"n=4, could be chance)"},
		{"the fewest that tell", repeated(100, 101, 102, 103), repeated(120, 121, 122, 123), "p=0.029 n=4", ""},
	} {
		c := compare(t, k.old, k.new, "p50>+10%")
		for _, got := range []struct {
			what  string
			lines []string
			want  string
		}{{"missed", c.Missed, k.missed}, {"undecided", c.Undecided, k.undecided}} {
			if text := strings.Join(got.lines, "\n"); (text == "") != (got.want == "") ||
				!strings.Contains(text, got.want) {
				t.Errorf("%s: %s %q, want %q", k.name, got.what, text, got.want)
			}
		}
	}
	// What the machine took bounds what a change can say: 20 % says nothing where it took 30 %.
	for taken, missed := range map[float64]int{0.1: 1, 0.3: 0} {
		d := repeated(120, 121, 122, 123, 124)
		for i := range d.Results {
			d.Results[i].Disturbance = &reports.Disturbance{Verdict: reports.VerdictDisturbed, Taken: taken,
				Reasons: []string{"client's threads waited"}}
		}
		c := compare(t, base, d, "p50>+10%")
		if len(c.Missed) != missed || len(c.Undecided) != 1-missed || c.Points[0].Taken != taken ||
			len(c.Old.Disturbed) != 0 || len(c.New.Disturbed) != 1 {
			t.Errorf("%v taken: missed %q, undecided %q, %v", taken, c.Missed, c.Undecided, c.New.Disturbed)
		}
	}
	// An absolute limit is one of the new run: no chance makes it smaller.
	if c := compare(t, base, repeated(90, 95, 125, 126, 127), "p50>110ns"); len(c.Missed) != 1 ||
		len(c.Undecided) != 0 {
		t.Errorf("absolute: missed %q, undecided %q", c.Missed, c.Undecided)
	}
}

func TestCompareGolden(t *testing.T) {
	old, new := goldenDocument(), goldenDocument()
	new.Environment.Version, new.Environment.Kernel = "v0.2.0", "6.13.0"
	new.Results = append(new.Results[1:], repeated(4000, 4100, 4200).Results...)
	old.Results = append(old.Results, repeated(3800, 3850).Results...)
	old.Results[9].Label = reports.LabelModel
	old.Results[8].Stack = "gone"
	c := compare(t, old, new, "p99>+10%", "bw<1MB/s", "max>1ns")
	golden(t, "compare.txt", render(t, func(w io.Writer) error { return textformat.WriteComparison(w, c) }))
	golden(t, "compare.json", render(t, c.WriteJSON))
	var back reports.Comparison
	if err := json.Unmarshal(render(t, c.WriteJSON), &back); err != nil || back.Schema != reports.CompareSchemaID {
		t.Errorf("read back: %v, schema %q", err, back.Schema)
	}
}

// Comparing reads the documents and nothing else.
func TestCompareLeavesDocumentsAlone(t *testing.T) {
	old, new := repeated(103, 101, 102), repeated(113, 111, 112)
	a, b := encode(t, old), encode(t, new)
	compare(t, old, new)
	if !bytes.Equal(a, encode(t, old)) || !bytes.Equal(b, encode(t, new)) {
		t.Error("a document changed")
	}
	// And a document from a file gives the same as the one in memory.
	read := must(reports.ReadDocument(bytes.NewReader(a), workloads))(t)
	same(t, "from a file", render(t, compare(t, old, new).WriteJSON), render(t, compare(t, read, new).WriteJSON))
}

func TestRunsOfAScenarioAreNotRepeatsOfEachOther(t *testing.T) {
	d := emptyRun()
	for i, run := range []string{"pinned", "free"} {
		r := point("tcp", "latency", "send", 64)
		r.Operations, r.Latency = 200_000, latency(200_000, float64(4000+3000*i))
		r.Parameters = map[string]any{"run": run}
		d.Results = append(d.Results, r)
	}
	c := compare(t, d, d)
	if len(c.Points) != 2 {
		t.Errorf("%d points compared, want one a run", len(c.Points))
	}
	contains(t, string(text(t, d, textformat.Options{})), "latency send, run pinned", "latency send, run free")
}

// What no test can tell from chance is marked, with one repeat too few and not with enough.
func TestTooFewRepeatsAreMarked(t *testing.T) {
	old, new := []float64{100, 101, 102, 103}, []float64{120, 121, 122, 123}
	for n, want := range map[int]bool{3: true, 4: false} {
		all := compare(t, repeated(old[:n]...), repeated(new[:n]...))
		if ch := findChange(t, all, "p50"); ch.Few() != want || (all.Footnote() != "") != want {
			t.Errorf("%d repeats: few %v, footnote %q", n, ch.Few(), all.Footnote())
		}
	}
}

// rounds is a run of one point in rounds.
func rounds(p50s ...float64) *reports.Document {
	d := repeated(p50s...)
	for i := range d.Results {
		d.Results[i].Repeat = i + 1
	}
	return d
}

// The rounds of a run share the machine's pace: two runs differ where none overlap, and of joined runs each is one
// sample.
func TestRoundsOfARunAreNoIndependentSamples(t *testing.T) {
	slow := rounds(140, 141, 142, 143, 144, 145)
	for _, c := range []struct {
		old, new    *reports.Document
		significant bool
	}{
		{rounds(100, 101, 102, 103, 104, 105), slow, true},
		{rounds(100, 101, 102, 103, 104, 140), slow, false}, // by ranks it has p = 0.004
		{rounds(100, 101, 102), rounds(200, 201, 202), false},
		{slow, rounds(100, 101, 102, 103, 104, 105), true},
	} {
		if ch := findChange(t, compare(t, c.old, c.new), "p50"); ch.Significant != c.significant || ch.P != nil {
			t.Errorf("%+v, want significant %v", ch, c.significant)
		}
	}
	var docs []*reports.Document
	for i := range 4 {
		docs = append(docs, rounds(100+float64(i), 110+float64(i), 300))
	}
	d := must(reports.Join(docs))(t)
	ch := findChange(t, compare(t, d, d), "p50")
	if ch.OldN != 4 || ch.Old != 111.5 || ch.P == nil || ch.Significant {
		t.Errorf("%+v, want the medians of four runs", ch)
	}
}

func TestJoinRefusesWhatIsNotOneRun(t *testing.T) {
	for _, test := range []struct {
		want   string
		change func(d *reports.Document)
	}{
		{"document 2 is of rdmaperf v9", func(d *reports.Document) { d.Environment.Version = "v9" }},
		{"go1.27", func(d *reports.Document) { d.Environment.Go = "go1.27" }},
		{"kernel: old 6.12.9, new 7.0", func(d *reports.Document) { d.Environment.Kernel = "7.0" }},
		{"document 2 is not like the first", func(d *reports.Document) { d.Environment.Kernel = "7.0" }},
		{"server kernel: old 6.1, new 7.0", func(d *reports.Document) {
			d.ServerEnvironment = &reports.Environment{Kernel: "7.0"}
		}},
		{"document 2 and the first differ in where the server was", func(d *reports.Document) {
			d.ServerEnvironment = &reports.Environment{}
		}},
	} {
		other := repeated(1)
		test.change(other)
		first := repeated(1)
		if strings.HasPrefix(test.want, "server") {
			first.ServerEnvironment = &reports.Environment{Kernel: "6.1"}
		}
		if _, err := reports.Join([]*reports.Document{first, other}); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
	if _, err := reports.Join(nil); err == nil {
		t.Error("nothing was joined without an error")
	}
	failed := repeated(1)
	failed.Error = &reports.RunError{Operation: "run", Message: "broke"}
	if d, err := reports.Join([]*reports.Document{repeated(1), failed}); err != nil || d.Error == nil ||
		d.Error.Message != "broke" {
		t.Errorf("joined %+v, %v, want the error of the second", d.Error, err)
	}
}
