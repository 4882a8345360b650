package reports_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
	pages "github.com/rdmaperf/rdmaperf/reports/page"
	"github.com/rdmaperf/rdmaperf/reports/render/hlog"
	textformat "github.com/rdmaperf/rdmaperf/reports/render/text"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
)

// A point that the machine disturbed says so in every format.
func TestDisturbedPointsSaySo(t *testing.T) {
	duel := func(noisy bool) *reports.Document {
		d := goldenDocument()
		d.Error, d.Results = nil, nil
		for i, stack := range []string{"tcp", "iwarp(crc)"} {
			for n := range 3 {
				p50 := float64(3000*(i+1) + n)
				r := reports.Result{Stack: stack, Label: reports.LabelSoft, Workload: "latency", Op: "send",
					SizeBytes: 64, Depth: 1, QPs: 1, Polling: "busy", Repeat: n + 1,
					RoundTrip: "half", MeasuredBy: "client", DurationNs: 1e9, Operations: 30_000, Verified: true,
					Latency: latency(30_000, p50),
					Disturbance: &reports.Disturbance{Client: &reports.Noise{Threads: 1},
						Server: &reports.Noise{Threads: 1}}}
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
	if out := string(text(t, quiet, textformat.Options{Width: 300})); strings.Contains(out, "noise in") {
		t.Errorf("quiet:\n%s", out)
	}
	out := string(text(t, noisy, textformat.Options{Width: 300}))
	if !strings.Contains(out, "\n! noise in 1 of 6 measurements, such as iwarp(crc) latency send 64: "+why) {
		t.Errorf("disturbed:\n%s", out)
	}
	if !strings.Contains(out, "64 bytes, repeat 3: noise: "+why) {
		t.Errorf("the repeat is not named:\n%s", out)
	}
	if long := "grpc(dropin,bpev,busy=200us,pollers=1,idle=1ms,ring=256K,watch)+iwarp(crc)"; true {
		d := duel(false)
		for i := range d.Results[3:] {
			d.Results[3+i].Stack = long
		}
		if out := string(text(t, d, textformat.Options{Width: 80})); !strings.Contains(out,
			"\n1: tcp\n2: "+long+"\n") || !strings.Contains(out, "\n    64  2 ") {
			t.Errorf("a long name is not numbered:\n%s", out)
		}
	}
	document := encode(t, noisy)
	reporttest.Validate(t, document)
	noisy.Results[5].Latency = stalled() // which has a histogram
	var log bytes.Buffer
	if err := hlog.WriteLog(&log, noisy); err != nil {
		t.Fatal(err)
	}
	for name, got := range map[string]string{"json": string(document), "csv": string(comma(t, noisy)),
		"hlog": log.String(), "perftest": string(perftest(t, noisy, false)),
		"page": strings.ReplaceAll(page(t, pages.Options{}, noisy), "&#39;", "'")} {
		if !strings.Contains(got, why) {
			t.Errorf("%s does not say it", name)
		}
	}
	if !strings.Contains(string(bench(t, noisy)), " 1 disturbed") || strings.Contains(string(bench(t, quiet)),
		" 1 disturbed") {
		t.Error("bench")
	}
	if v := find(t, gather(t, noisy)["rdmaperf_disturbed"],
		map[string]string{"transport": "iwarp(crc)"}).GetGauge().GetValue(); v != 1 {
		t.Errorf("metrics: %v", v)
	}
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
