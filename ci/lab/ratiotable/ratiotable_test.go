package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Tables of perftest 4.5 on rxe.
const (
	latOut = `---------------------------------------------------------------------------------------
                    Send Latency Test
 Dual-port       : OFF		Device         : rxe0
---------------------------------------------------------------------------------------
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] 
 64      1000          13.97          333343.66      16.28    	       1429.24     	-nan   		31000.23 		333343.66
---------------------------------------------------------------------------------------
`
	bwOut = `---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      500              74.48              18.88  		   0.000302
---------------------------------------------------------------------------------------
`
	rateOut = " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n 64         5000    " +
		"         1.97               0.21   \t\t   0.003426\n"
)

func TestPerftestTables(t *testing.T) {
	for _, c := range []struct {
		text string
		p    probe
		want float64
	}{
		{latOut, probe{"rxe0", "send_lat", 64}, 16280},
		{bwOut, probe{"siw0", "write_bw", 65536}, 302.08},
		{rateOut, probe{"rxe0", "send_bw", 64}, 3426},
	} {
		got, err := perftest([]byte(c.text), c.p)
		if err != nil || math.Abs(got-c.want) > 1e-6*c.want {
			t.Errorf("perftest of %v = %v, %v, want %v", c.p, got, err, c.want)
		}
	}
}

func TestPerftestRefusesWhatProvesNothing(t *testing.T) {
	lat, bw := probe{"rxe0", "send_lat", 64}, probe{"rxe0", "send_bw", 64}
	for name, c := range map[string]struct {
		text string
		p    probe
	}{
		"nothing":            {"", lat},
		"no table":           {"Couldn't connect to 10.77.0.1:18515\n", lat},
		"header alone":       {strings.SplitAfter(latOut, "usec] \n")[0], lat},
		"inf":                {strings.Replace(latOut, "16.28", "inf", 1), lat},
		"zero":               {strings.Replace(latOut, "16.28", "0.00", 1), lat},
		"a word":             {strings.Replace(latOut, "16.28", "fast", 1), lat},
		"a column less":      {strings.Replace(latOut, "16.28", "", 1), lat},
		"another size":       {latOut, probe{"rxe0", "send_lat", 128}},
		"another test":       {latOut, bw},
		"two rows":           {rateOut + " 64 5000 1.97 0.21 0.003426\n", bw},
		"rate of a nan kind": {strings.Replace(rateOut, "0.003426", "-nan", 1), bw},
	} {
		if x, err := perftest([]byte(c.text), c.p); err == nil {
			t.Errorf("%s: perftest = %v, want an error", name, x)
		}
	}
}

func FuzzPerftest(f *testing.F) {
	for _, s := range []string{"", latOut, bwOut, rateOut, " #bytes\n64\n"} {
		f.Add([]byte(s), int64(64))
	}
	f.Fuzz(func(t *testing.T, b []byte, size int64) {
		for _, test := range []string{"send_lat", "send_bw"} {
			if x, err := perftest(b, probe{"rxe0", test, size}); err == nil && !(x > 0) {
				t.Errorf("perftest = %v without an error", x)
			}
		}
	})
}

// doc is a document of rdmaperf as its reports package writes it.
func doc(t *testing.T, results ...reports.Result) []byte {
	t.Helper()
	var b bytes.Buffer
	d := reports.Document{Started: time.Unix(1, 0), Command: []string{"rdmaperf"},
		Environment: reports.Environment{CPUs: 2}, Results: results}
	if err := d.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func result(p probe, x float64) reports.Result {
	r := reports.Result{Stack: "verbs:" + p.device, Transport: "verbs:" + p.device, Label: reports.LabelSoft,
		SizeBytes: p.size, QPs: 1, Polling: reports.PollingBusy}
	if p.latency() {
		r.Workload, r.Op, r.Depth, r.Latency = "latency", strings.TrimSuffix(p.test, "_lat"), 1,
			&reports.Latency{Count: 1000, P50: x}
	} else {
		r.Workload, r.Op, r.Depth = "throughput", strings.TrimSuffix(p.test, "_bw"), 128
		r.Throughput = &reports.Throughput{BytesPerSecond: x * float64(p.size), OperationsPerSecond: x}
	}
	return r
}

func TestDocumentRefusesRunsThatProveNothing(t *testing.T) {
	p := probe{"rxe0", "send_lat", 64}
	lost := result(p, 1000)
	lost.Errors = 1
	adaptive := result(p, 1000)
	adaptive.Polling = reports.PollingAdaptive
	compared := result(p, 1000)
	compared.Verified = true
	for name, b := range map[string][]byte{
		"verified true":     doc(t, compared),
		"want one":          doc(t, result(p, 1), result(p, 2)),
		"operations failed": doc(t, lost),
		"want busy":         doc(t, adaptive),
		"want 64":           doc(t, result(probe{"rxe0", "send_lat", 128}, 1000)),
		"is no send_lat":    doc(t, result(probe{"rxe0", "send_bw", 64}, 1000)),
		"value is 0":        doc(t, result(p, 0)),
	} {
		if x, err := document(b, p, reports.PollingBusy, false); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("document = %v, %v, want an error with %q", x, err, name)
		}
	}
}

// machine is six repeats of a device on which rdmaperf takes ratio times perftest's
// time, or reaches 1/ratio of its rate.
func machine(t *testing.T, ratio float64) fstest.MapFS {
	dir := fstest.MapFS{}
	for repeat, slow := range map[int]float64{1: 1, 2: 4, 3: 1.5, 4: 1, 5: 1, 6: 1} { // the machine is busy in repeat 2
		lat, bw := probe{"rxe0", "send_lat", 64}, probe{"rxe0", "send_bw", 64}
		put := func(tool string, p probe, b []byte) {
			dir[fmt.Sprintf("%d.%s.%s.%s.%d", repeat, tool, p.device, p.test, p.size)] = &fstest.MapFile{Data: b}
		}
		put("perftest", lat, []byte(strings.Replace(latOut, "16.28", fmt.Sprintf("%.2f", 16*slow), 1)))
		put("rdmaperf", lat, doc(t, result(lat, 16000*slow*ratio)))
		put("perftest", bw, []byte(strings.Replace(rateOut, "0.003426", fmt.Sprintf("%.6f", 0.04/slow), 1)))
		put("rdmaperf", bw, doc(t, result(bw, 40000/slow/ratio)))
	}
	return dir
}

func tableOf(t *testing.T, dir fstest.MapFS, judge bool) *table {
	t.Helper()
	r, err := readDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return build(r, judge)
}

func TestVerdictsHaveTwoSides(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		judge bool
		code  int
		words []string
	}{
		{1, true, reports.ExitOK,
			[]string{"send_lat 64 latency busy - 1.000 1.000 to 1.000 6 3 % equal 16.00 us 16.00 us 1.000\n",
				"send_bw 64 rate busy - 1.000 1.000 to 1.000 6 5 % equal 40000 op/s 40000 op/s 1.000\n"}},
		{1.04, true, reports.ExitThreshold, []string{"1.040 1.040 to 1.040 6 3 % worse",
			"0.962 0.962 to 0.962 6 5 % equal"}},
		{1.1, true, reports.ExitThreshold, []string{"1.100 1.100 to 1.100 6 3 % worse",
			"0.909 0.909 to 0.909 6 5 % worse"}},
		{0.9, true, reports.ExitOK, []string{"0.900 0.900 to 0.900 6 3 % better", "1.111 1.111 to 1.111 6 5 % better"}},
		{1.1, false, reports.ExitOK,
			[]string{"send_lat 64 latency busy - 1.100 1.100 to 1.100 6 16.00 us 17.60 us 1.100\n"}},
	} {
		tab := tableOf(t, machine(t, c.ratio), c.judge)
		if code := reports.Code(tab.outcome()); code != c.code {
			t.Errorf("ratio %v: exit code %d (%v), want %d", c.ratio, code, tab.outcome(), c.code)
		}
		var text bytes.Buffer
		if err := tab.writeText(&text); err != nil {
			t.Fatal(err)
		}
		squeezed := regexp.MustCompile(` +`).ReplaceAllString(text.String(), " ")
		for _, w := range c.words {
			if !strings.Contains(squeezed, w) {
				t.Errorf("ratio %v: text lacks %q:\n%s", c.ratio, w, &text)
			}
		}
	}
}

// The whole interval decides, and a few pairs have none.
func TestTheIntervalDecides(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		n      int
		less   bool
		want   targets.Verdict
	}{
		{0.98, 1.02, 20, true, equal}, {0.971, 1.03, 20, true, equal}, {0.97, 1.02, 20, true, undecided},
		{0.98, 1.031, 20, true, undecided}, {1.001, 1.031, 20, true, worse}, {1.001, 1.031, 20, false, better},
		{0.9, 0.999, 20, true, better}, {0.9, 0.999, 20, false, worse}, {0.9, 1, 20, true, undecided},
		{1.5, 1.5, 5, true, undecided}, {1, 1, 5, true, undecided}, {0, 0, 0, true, targets.NotMeasured},
	} {
		if got := decide(c.lo, c.hi, c.n, 0.03, c.less); got != c.want {
			t.Errorf("%v to %v of %d (less is better: %v): %s, want %s", c.lo, c.hi, c.n, c.less, got, c.want)
		}
	}
}

// Neither a lucky repeat of one tool nor a busy one of the other decides: the middle of
// the pairs does, and undecided is no success.
func TestPairsDecide(t *testing.T) {
	p := probe{"rxe0", "send_lat", 64}
	for _, c := range []struct {
		pairs   [][2]float64 // perftest, rdmaperf; us
		verdict targets.Verdict
		best    float64
	}{
		{[][2]float64{{16, 17}, {16, 17}, {16, 15}, {16, 17}, {16, 17}, {16, 17}, {16, 17}, {16, 17}, {16, 17}}, worse,
			15. / 16},
		{[][2]float64{{15, 15}, {16, 16}, {16, 32}, {16, 16}, {16, 16}, {16, 16}, {16, 16}, {16, 16}, {16, 16}},
			equal, 1},
		{[][2]float64{{16, 15}, {16, 17}, {16, 17}, {16, 15}, {16, 17}, {16, 15}}, undecided, 15. / 16},
		{[][2]float64{{16, 16}, {16, 16}, {16, 16}}, undecided, 1},
	} {
		dir := fstest.MapFS{}
		for i, x := range c.pairs {
			dir[fmt.Sprintf("%d.perftest.rxe0.send_lat.64", i)] = &fstest.MapFile{Data: []byte(strings.Replace(latOut,
				"16.28", fmt.Sprintf("%.2f", x[0]), 1))}
			dir[fmt.Sprintf("%d.rdmaperf.rxe0.send_lat.64", i)] = &fstest.MapFile{Data: doc(t, result(p, x[1]*1e3))}
		}
		tab := tableOf(t, dir, true)
		if l := tab.Lines[0]; l.Verdict != c.verdict || math.Abs(l.Best-c.best) > 1e-9 {
			t.Errorf("%v: %s, best %v, want %s and %v", c.pairs, l.Verdict, l.Best, c.verdict, c.best)
		}
		if ok := tab.outcome() == nil; ok != (c.verdict == equal) {
			t.Errorf("%v: outcome %v", c.pairs, tab.outcome())
		}
	}
}

// What perftest cannot do is next to what both do, and decides nothing.
func TestAdaptivePollingIsShownAndNotJudged(t *testing.T) {
	p := probe{"rxe0", "send_bw", 64}
	for _, c := range []struct {
		ratio, adaptive float64
		code            int
	}{{1, 2, reports.ExitOK}, {1.1, 0.5, reports.ExitThreshold}} {
		dir := machine(t, c.ratio)
		for repeat := range 5 { // one of them perftest has not
			r := result(p, 40000/c.adaptive)
			r.Polling = reports.PollingAdaptive
			dir[fmt.Sprintf("%d.adaptive.rxe0.send_bw.64", repeat)] = &fstest.MapFile{Data: doc(t, r)}
		}
		tab := tableOf(t, dir, true)
		if code := reports.Code(tab.outcome()); code != c.code {
			t.Errorf("busy %v, adaptive %v: exit code %d, want %d", c.ratio, c.adaptive, code, c.code)
		}
		l := tab.Lines[len(tab.Lines)-1]
		if len(tab.Lines) != 3 || l.Polling != reports.PollingAdaptive || l.Verdict != targets.None ||
			len(l.Ratios) != 4 {
			t.Errorf("%d lines, the last %+v", len(tab.Lines), l)
		}
	}
}

func TestOnlySmallLatenciesAndRatesAreJudged(t *testing.T) {
	for p, want := range map[probe][2]float64{ // the figure itself, and the period
		{"rxe0", "send_lat", 64}: {0.03, 0.05}, {"rxe0", "write_lat", 64}: {0.03, 0.05},
		{"rxe0", "read_lat", 64}: {0.03, 0.05}, {"siw0", "read_lat", 65536}: {},
		{"rxe0", "atomic_lat", 8}: {}, {"rxe0", "send_bw", 64}: {0.05, 0.05}, {"siw0", "read_bw", 65536}: {0.05, 0.05},
	} {
		if got := [2]float64{p.margin(false), p.margin(true)}; got != want {
			t.Errorf("%v has margins %v, want %v", p, got, want)
		}
	}
}

// What comparing the data costs is next to what perftest compares with, both quantities of
// it, out of probes that ran in one piece.
func TestBothQuantitiesWithAndWithoutVerification(t *testing.T) {
	p := probe{"rxe0", "send_lat", 64}
	half := func(x float64, verified bool) []byte {
		r := result(p, x)
		r.RoundTrip, r.Operations, r.DurationNs, r.Verified = reports.RoundTripHalf, 10, int64(20*x*1.5), verified
		return doc(t, r)
	}
	dir, whole := fstest.MapFS{}, fstest.MapFS{}
	for i := range 6 {
		dir[fmt.Sprintf("%d.perftest.rxe0.send_lat.64", i)] = &fstest.MapFile{Data: []byte(latOut)}
		dir[fmt.Sprintf("%d.rdmaperf.rxe0.send_lat.64", i)] = &fstest.MapFile{Data: half(16280, false)}
		theirs := strings.Replace(latOut, "1429.24", "32.56", 1)
		whole[fmt.Sprintf("%d.perftest.rxe0.send_lat.64", 7+i)] = &fstest.MapFile{Data: []byte(theirs)}
		whole[fmt.Sprintf("%d.rdmaperf.rxe0.send_lat.64", 7+i)] = &fstest.MapFile{Data: half(16280, false)}
		whole[fmt.Sprintf("%d.verified.rxe0.send_lat.64", 7+i)] = &fstest.MapFile{Data: half(32560, true)}
	}
	r, err := readDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	w, err := readDir(whole)
	if err != nil {
		t.Fatal(err)
	}
	r.periodsOf(w)
	var got []string
	for _, l := range build(r, true).Lines {
		got = append(got, fmt.Sprintf("%s %s %.2f %s", l.Figure, l.data(), l.Ratio, l.Verdict))
	}
	want := []string{"latency - 1.00 equal", "latency compared 2.00 ", "period - 0.75 better", "period compared 1.50 "}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhatIsMissingIsNotAPass(t *testing.T) {
	if code := reports.Code(tableOf(t, fstest.MapFS{}, true).outcome()); code != reports.ExitFailed {
		t.Errorf("of nothing: exit code %d, want %d", code, reports.ExitFailed)
	}
	dir := machine(t, 1)
	delete(dir, "2.rdmaperf.rxe0.send_lat.64")
	dir["2.rdmaperf.rxe0.send_lat.64.failed"] = &fstest.MapFile{Data: []byte("exit code 77: no such device\n")}
	tab := tableOf(t, dir, true)
	if code := reports.Code(tab.outcome()); code != reports.ExitFailed || len(tab.Lines[0].Ratios) != 5 {
		t.Errorf("one probe failed: exit code %d, ratios %v, want %d and five ratios", code, tab.Lines[0].Ratios,
			reports.ExitFailed)
	}
	if want := "2.rdmaperf.rxe0.send_lat.64: exit code 77: no such device"; len(tab.Failures) != 1 ||
		tab.Failures[0] != want {
		t.Errorf("failures = %q, want %q", tab.Failures, want)
	}
	for n := 1; n <= 6; n++ {
		delete(dir, fmt.Sprintf("%d.perftest.rxe0.send_lat.64", n))
	}
	if err := tableOf(t, dir, false).outcome(); reports.Code(err) != reports.ExitFailed ||
		!strings.Contains(err.Error(), "not measured: rxe0 send_lat 64 B latency") {
		t.Errorf("without perftest: %v, want not measured", err)
	}
}

// A latency's period is next to it, halved where the latency is.
func TestPeriodsFollowPerftestsDefinition(t *testing.T) {
	p := probe{"rxe0", "send_lat", 64}
	half := result(p, 1000)
	half.RoundTrip, half.DurationNs, half.Operations = reports.RoundTripHalf, 9000, 3
	full := half
	full.RoundTrip = reports.RoundTripFull
	for _, c := range []struct {
		tool string
		b    []byte
		want float64
	}{
		{"perftest", []byte(latOut), 1429240},
		{"perftest", nil, 0},
		{"rdmaperf", doc(t, half), 1500},
		{"rdmaperf", doc(t, full), 3000},
		{"rdmaperf", doc(t, result(p, 1000)), 0},
	} {
		if got := period(c.tool, c.b); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("period of %s %.80q = %v, want %v", c.tool, c.b, got, c.want)
		}
	}
}

// Where both tools took turns within a repeat their means have the stops in them.
func TestPeriodsComeFromProbesInOnePiece(t *testing.T) {
	p := probe{"rxe0", "send_lat", 64}
	stopped := result(p, 1000)
	stopped.RoundTrip, stopped.DurationNs, stopped.Operations = reports.RoundTripHalf, 900000, 3
	whole := stopped
	whole.DurationNs = 9000
	read := func(r reports.Result) *raw {
		a, err := readDir(fstest.MapFS{"1.rdmaperf.rxe0.send_lat.64": {Data: doc(t, r)},
			"2.rdmaperf.rxe0.send_lat.64.failed": {Data: []byte("x")}})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	a := read(stopped)
	a.periodsOf(read(whole))
	if got := a.periods[p]["rdmaperf"][1]; got != 1500 {
		t.Errorf("period %v, want 1500", got)
	}
	if got := a.values[p]["rdmaperf"][1]; got != 1000 || len(a.failures) != 2 {
		t.Errorf("value %v, %d failures, want its own 1000 and both", got, len(a.failures))
	}
}

func TestNamesOfFiles(t *testing.T) {
	p, tool, repeat, err := parseName("12.rdmaperf.siw0.read_bw.65536")
	if err != nil || p != (probe{"siw0", "read_bw", 65536}) || tool != "rdmaperf" || repeat != 12 {
		t.Errorf("parseName = %v, %q, %d, %v", p, tool, repeat, err)
	}
	for _, name := range []string{"", "log", "1.perftest.rxe0.send_lat", "x.perftest.rxe0.send_lat.64",
		"1.other.rxe0.send_lat.64", "1.perftest.rxe0.send.64", "1.perftest.rxe0.send_lat.0"} {
		if _, _, _, err := parseName(name); err == nil {
			t.Errorf("parseName(%q) succeeds", name)
		}
	}
}

func TestJSONHasNoNullLists(t *testing.T) {
	b, err := json.Marshal(tableOf(t, fstest.MapFS{}, true))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte(":null")) {
		t.Errorf("null in %s", b)
	}
}
