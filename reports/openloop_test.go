package reports_test

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render/hlog"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// stopped is a run of 3 s at 1000/s whose server stood still for the last 436 ms of it.
func stopped() *reports.Document {
	d := emptyRun()
	rec := reports.NewRecorder()
	rec.RecordN(250_000, 2564)
	for i := range int64(436) {
		rec.AtLeast(436_000_000-i*1_000_000, 1)
	}
	l := rec.Snapshot()
	loop := reports.NewOpenLoop(1000, false, 2564, 2564, 436, 3, 3*time.Second)
	r := point("tcp", "latency", "send", 64)
	r.RoundTrip, r.Rate, r.Arrivals, r.DurationNs, r.Operations = reports.RoundTripHalf, 1000, "constant", 3e9, 2564
	r.Latency, r.LatencyService, r.OpenLoop = &l, latency(2564, 240_000), loop
	r.Verification = &reports.Verification{Mode: reports.VerifySample, Messages: 2564, Numbers: 2500, Whole: 11,
		Bytes: 20_640}
	hol := r
	hol.Workload, hol.Rate, hol.Arrivals, hol.Latency, hol.LatencyService, hol.OpenLoop = "hol", 0, "", nil, nil, nil
	hol.Detail = &probes{Arm: "same-qp", BulkSizeBytes: 1 << 20, ProbeSizeBytes: 64, ProbeIntervalNs: 1e6,
		ProbeAlone: *latency(3000, 1000), ProbeLoaded: l,
		LoadedLoop: loop}
	d.Results = append(d.Results, r, hol)
	return of(d)
}

// What was due counts: percentiles among the lower bounds say so, those below do not, and the loop is saturated.
func TestOperationsThatWereDueCount(t *testing.T) {
	d := stopped()
	l := d.Results[0].Latency
	if l.Count != 3000 || l.Unfinished != 436 ||
		!slices.Equal(l.AtLeast, []string{"p90", "p99", "p999", "p9999", "p99999", "max", "mean"}) {
		t.Errorf("count %d, unfinished %d, at least %q", l.Count, l.Unfinished, l.AtLeast)
	}
	if math.Abs(l.P50-250_000) > 250 || math.Abs(l.P99-406_000_000) > 1e6 || l.Max != 436_000_000 {
		t.Errorf("p50 %v, p99 %v, max %v", l.P50, l.P99, l.Max)
	}
	contains(t, strings.Join(failures(t, d, threshold(t, "p99>1ms")), "\n"), "406")
	rec := reports.NewRecorder()
	rec.Merge(reportsRecorder(5))
	rec.Merge(reportsRecorder(7))
	if m := rec.Snapshot(); m.Unfinished != 2 || m.Count != 4 || !m.IsBound("max") {
		t.Errorf("merged: %+v", m)
	}
	rec.Reset()
	rec.Record(9)
	if m := rec.Snapshot(); m.Unfinished != 0 || len(m.AtLeast) != 0 {
		t.Errorf("after a reset: %+v", m)
	}
	// A maximum that is no lower bound stays one.
	rec.AtLeast(3, 1)
	if m := rec.Snapshot(); m.IsBound("max") || !m.IsBound("p99") || !m.IsBound("mean") {
		t.Errorf("longest is known: %q", m.AtLeast)
	}
}

// A percentile whose sample is the last that was finished is no lower bound; the next one is.
func TestTheLastFinishedSampleIsKnown(t *testing.T) {
	for unfinished, bound := range map[int64]bool{10: false, 11: true} {
		rec := reports.NewRecorder()
		rec.RecordN(1000, 100-unfinished)
		rec.AtLeast(5000, unfinished)
		if l := rec.Snapshot(); l.IsBound("p90") != bound {
			t.Errorf("%d of 100 unfinished: at least %q", unfinished, l.AtLeast)
		}
	}
}

func reportsRecorder(ns int64) *reports.Recorder {
	r := reports.NewRecorder()
	r.Record(ns)
	r.AtLeast(10*ns, 1)
	return r
}

func TestSaturation(t *testing.T) {
	for _, c := range []struct {
		name                    string
		rate                    float64
		poisson                 bool
		sent, completed, unsent int64
		window                  time.Duration
		want                    bool
	}{
		{"all of it", 1000, false, 3000, 3000, 0, 3 * time.Second, false},
		{"one is under way", 1000, false, 2999, 2999, 1, 3 * time.Second, false},
		{"2 in 100 are missing", 1000, false, 2940, 2940, 60, 3 * time.Second, true},
		{"so many iterations, in time", 1000, false, 3000, 3000, 0, 3001 * time.Millisecond, false},
		{"so many iterations, in twice the time", 1000, false, 3000, 3000, 0, 6 * time.Second, true},
		{"a rare Poisson process", 10, true, 22, 22, 0, 3 * time.Second, false},
		{"a Poisson process in twice its time", 1000, true, 3000, 3000, 0, 6 * time.Second, true},
		{"one operation, less than a second", 0.1, false, 1, 1, 0, 60 * time.Millisecond, false},
		{"nothing was due", 0.1, false, 0, 0, 0, 60 * time.Millisecond, false},
		{"99 of 100", 100, false, 100, 99, 0, time.Second, false},
		{"one less than offered", 100, false, 98, 98, 0, time.Second, false},
		{"more came than was done", 1000, true, 3100, 3000, 0, 3 * time.Second, true},
		{"no window", 1000, false, 10, 10, 0, 0, false},
		{"unanswered", 1000, false, 3000, 2000, 0, 3 * time.Second, true},
	} {
		if o := reports.NewOpenLoop(c.rate, c.poisson, c.sent, c.completed, c.unsent, 0,
			c.window); o.Saturated != c.want || (o.AchievedPerSecond > 0) != (c.completed > 0 && c.window > 0) {
			t.Errorf("%s: %+v", c.name, o)
		}
	}
}

func TestEveryFormatSaysWhatWasDone(t *testing.T) {
	d := stopped()
	document := encode(t, d)
	reporttest.Validate(t, document)
	var hgrm bytes.Buffer
	noError(t, hlog.WritePercentiles(&hgrm, d.Results[0].Latency))
	metrics := gather(t, d)
	for name, want := range map[string]float64{"due_operations_total": 3000, "sent_operations_total": 2564,
		"completed_operations_total": 2564, "compared_messages_total": 11, "compared_numbers_total": 2500,
		"compared_bytes_total": 20_640, "saturated": 1} {
		wantMetric(t, metrics, name, want, map[string]string{"workload": "latency"})
	}
	for name, c := range map[string]struct {
		got  string
		want []string
	}{
		"json": {string(document), []string{`"due": 3000`, `"sent": 2564`, `"completed": 2564`,
			`"achieved_per_second": 854.6`, `"saturated": true`, `"unfinished": 436`, `"loaded_loop": {`,
			`"numbers": 2500,`, `"whole": 11,`}},
		"text": {string(text(t, d, textformat.Options{Width: 200})),
			[]string{">406", ">436000.00", "3000  2564       2564         1000         854.7  saturated",
				"of 2564 messages 11 compared byte by byte and the numbers of 2500, 20640 bytes",
				"> is at least that: operations were due and not done"}},
		"csv": {string(comma(t, d)), []string{",sample,,,compared.numbers,count,1,neither,2500,",
			",load.due,count,1,neither,3000,", ",load.achieved,rate,1/s,more,854.6666666666666,", ",p90,time,ns,less,",
			",least\r\n", ",loaded.due,count,1,neither,3000,", ",loaded.saturated,count,1,less,1,"}},
		"hlog": {string(histogramLog(t, d)), []string{"of 2564 messages 11 compared byte by byte",
			"436 of 3000 samples are lower bounds, and so are p90",
			"3000 operations due, 2564 sent, 2564 completed, 854.7/s achieved of 1000/s offered, saturated"}},
		"hgrm": {hgrm.String(), []string{"#[Unfinished = 436 of the samples are lower bounds"}},
		"perftest": {string(perftest(t, d, false)),
			[]string{"# 3000 operations due, 2564 sent, 2564 completed, 854.7/s achieved of 1000/s offered, saturated",
				"# 64 bytes: of 2564 messages 11 compared byte by byte", "# lower bounds at 1000/s: p90 p99"}},
		"bench": {string(bench(t, d)), []string{"11 compared-msgs 2500 numbered-msgs 20640 compared-B",
			"3000 due-ops 2564 sent-ops 2564 completed-ops 854.667 achieved-ops/s 1 saturated"}},
		"page": {page(t, pages.Options{}, d), []string{"! saturated", "<td class=\"n\">20640</td>", ">2564<",
			"&gt;406"}},
	} {
		contains(t, name+":\n"+c.got, c.want...)
	}
	lacks(t, string(text(t, d, textformat.Options{Width: 200})), ">250.") // the median, which no bound touches
}

// Rates are said to a tenth, and without one where they are whole; tables have all digits.
func TestAchievedRatesAreSaidToATenth(t *testing.T) {
	for _, c := range []struct {
		rate          float64
		said, written string
	}{{1000, ", 1000/s achieved", "1000"}, {854.666, ", 854.7/s achieved", "854.666"}} {
		if s := (&reports.OpenLoop{AchievedPerSecond: c.rate}).String(); !strings.Contains(s, c.said) {
			t.Errorf("%q, want it to have %q", s, c.said)
		}
		if s := reports.Offered(&reports.Result{Rate: c.rate}); s != c.written {
			t.Errorf("offered %q, want %q", s, c.written)
		}
	}
}

// A point that the machine disturbed says so in every format.
func TestDisturbedPointsSaySo(t *testing.T) {
	duel := func(noisy bool) *reports.Document {
		d := emptyRun()
		for i, stack := range []string{"tcp", "iwarp(crc)"} {
			for n := range 3 {
				r := point(stack, "latency", "send", 64)
				r.Repeat, r.RoundTrip, r.Operations = n+1, reports.RoundTripHalf, 30_000
				r.Latency = latency(30_000, float64(3000*(i+1)+n))
				r.Disturbance = &reports.Disturbance{Client: &reports.Noise{Threads: 1}, Server: &reports.Noise{Threads: 1}}
				if noisy && i == 1 && n == 2 {
					r.Disturbance.Client.RunQueueWaitNs = 123_000_000
				}
				r.Disturbance.Judge(1e9)
				d.Results = append(d.Results, r)
			}
		}
		return of(d)
	}
	const why = "client's threads waited for a CPU for 12.3 % of the window"
	quiet, noisy := duel(false), duel(true)
	lacks(t, string(text(t, quiet, textformat.Options{Width: 300})), "noise in")
	contains(t, string(text(t, noisy, textformat.Options{Width: 300})),
		"\n! noise in 1 of 6 measurements, such as iwarp(crc) latency send 64: "+why, "64 bytes, repeat 3: noise: "+why)
	document := encode(t, noisy)
	reporttest.Validate(t, document)
	noisy.Results[5].Latency = stalled() // which has a histogram
	for name, got := range map[string]string{"json": string(document), "csv": string(comma(t, noisy)),
		"hlog": string(histogramLog(t, noisy)), "perftest": string(perftest(t, noisy, false)),
		"page": strings.ReplaceAll(page(t, pages.Options{}, noisy), "&#39;", "'")} {
		contains(t, name+":\n"+got, why)
	}
	contains(t, string(bench(t, noisy)), " 1 disturbed")
	lacks(t, string(bench(t, quiet)), " 1 disturbed")
	long := "grpc(dropin,bpev,busy=200us,pollers=1,idle=1ms,ring=256K,watch)+iwarp(crc)"
	for i := range quiet.Results[3:] {
		quiet.Results[3+i].Stack = long
	}
	contains(t, string(text(t, quiet, textformat.Options{Width: 80})), "\n1: tcp\n2: "+long+"\n", "\n    64  2 ")
	wantMetric(t, gather(t, noisy), "disturbed", 1, map[string]string{"transport": "iwarp(crc)"})
}

// Figures that cannot be are told from figures that are bad.
func TestImpossibleFigures(t *testing.T) {
	r := reports.Result{}
	if r.Contradict(""); r.Disturbance != nil {
		t.Errorf("nothing contradicts itself: %s", r.Disturbance)
	}
	if r.Contradict("less than nothing"); r.Disturbance.Verdict != reports.VerdictImpossible ||
		!strings.Contains(r.Disturbance.String(), "less than nothing") {
		t.Errorf("%s", r.Disturbance)
	}
}
