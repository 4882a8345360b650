package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// claimOf is one claim of what was measured.
func claimOf(t *testing.T, m measures, l logs, name string) claim {
	t.Helper()
	all, err := m.claims(l)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no claim %s", name)
	return claim{}
}

func stream(mb float64) *reports.Result {
	return &reports.Result{Verified: true, Throughput: &reports.Throughput{BytesPerSecond: mb * 1e6 / 8}}
}

// TestNothingMeasuredShowsNoClaim: an empty table says so of every one.
func TestNothingMeasuredShowsNoClaim(t *testing.T) {
	all, err := measures{}.claims(logs{})
	if err != nil || len(all) != 11 {
		t.Fatalf("%d claims: %v", len(all), err)
	}
	for _, c := range all {
		if c.Verdict != absent {
			t.Errorf("%s: %s (%s)", c.Name, c.Verdict, c.Figure)
		}
	}
}

// repeated is one result for each figure.
func repeated(of func(float64) *reports.Result, xs ...float64) (rs []*reports.Result) {
	for _, x := range xs {
		rs = append(rs, of(x))
	}
	return rs
}

// TestOneCopyIsEqualByItsWholeInterval: one size that may be behind decides nothing, and one
// that is behind is a miss, whatever the medians say.
func TestOneCopyIsEqualByItsWholeInterval(t *testing.T) {
	for _, c := range []struct {
		streams []float64 // of one copy at 10 000 octets, beside 10
		want    verdict
	}{{[]float64{9.8, 10, 11}, shown}, {[]float64{9.6, 10, 11}, undecided}, {[]float64{9, 9.5, 9.8}, undecided},
		{[]float64{9, 9.5, 9.6}, missed}, {nil, absent}} {
		m := measures{}
		for _, size := range copySizes {
			m[latencyOf("copies", raw, size, 0)], m[latencyOf("copies", twoCopies, size, 0)] = repeated(latency, 1, 1,
				1), repeated(latency, 1, 1, 1)
			m[streamOf("copies", raw, size, 16, 0)], m[streamOf("copies", twoCopies, size, 16, 0)] = repeated(stream,
				10, 10, 10), repeated(stream, 10, 10, 10)
		}
		m[streamOf("copies", raw, 64<<10, 16, 0)] = repeated(copying(65), 10, 10, 10)
		m[streamOf("copies", twoCopies, 64<<10, 16, 0)] = repeated(copying(130), 10, 10, 10)
		m[streamOf("copies", raw, 10_000, 16, 0)] = repeated(stream, c.streams...)
		m[streamOf("zero", byRef, 64<<10, 16, 0)] = repeated(referring(1), 10, 10, 10)
		if got := claimOf(t, m, logs{}, "F3"); got.Verdict != c.want {
			t.Errorf("%v: %+v", c.streams, got)
		}
	}
}

// copying is a stream whose receiver copied n KiB of 64.
func copying(n int64) func(float64) *reports.Result {
	return func(mb float64) *reports.Result {
		r := stream(mb)
		r.Operations, r.SizeBytes = 1, 64<<10
		r.Counters = &reports.Counters{
			Server: []reports.DeviceCounters{{Counters: map[string]int64{"rx_copied": n << 10}}}}
		return r
	}
}

// TestCopiesAreThoseThatWereCounted: an arm of one copy that counted two is a miss, and so
// is one without a count, however fast.
func TestCopiesAreThoseThatWereCounted(t *testing.T) {
	for _, c := range []struct {
		one, two int64
		want     verdict
	}{{65, 131, shown}, {131, 131, missed}, {65, 65, missed}, {65, 200, missed}, {0, 131, missed}} {
		m := measures{}
		m[streamOf("copies", raw, 64<<10, 16, 0)] = repeated(copying(c.one), 1, 1)
		m[streamOf("copies", twoCopies, 64<<10, 16, 0)] = repeated(copying(c.two), 1, 1)
		if text, v := m.counted(); v != c.want {
			t.Errorf("%+v: %s (%s)", c, v, text)
		}
	}
	if _, v := (measures{}).counted(); v != absent {
		t.Errorf("nothing counted: %s", v)
	}
}

// referring is a stream whose sender copied n KiB of 64 into lwIP's segments.
func referring(n int64) func(float64) *reports.Result {
	return func(mb float64) *reports.Result {
		r := stream(mb)
		r.Operations, r.SizeBytes = 1, 64<<10
		r.Counters = &reports.Counters{
			Client: []reports.DeviceCounters{{Counters: map[string]int64{"octets_framed": 0, "tx_copied": n << 10,
				"tx_octets": 66 << 10, "tx_referenced": 64 << 10}}}}
		return r
	}
}

// TestByReferenceOnlyHeadersAreCopied: an arm whose payload was copied all the same is a miss,
// and one that was not measured is none.
func TestByReferenceOnlyHeadersAreCopied(t *testing.T) {
	for n, want := range map[int64]verdict{2: shown, 64: missed} {
		m := measures{streamOf("zero", byRef, 64<<10, 16, 0): repeated(referring(n), 1, 1)}
		if text, v := m.byReference(); v != want || !strings.Contains(text, "1.03 into the ring), 1.00 by reference") {
			t.Errorf("%d KiB: %s (%s)", n, text, v)
		}
	}
	if _, v := (measures{}).byReference(); v != absent {
		t.Errorf("nothing counted: %s", v)
	}
}

// TestAListHasWhatRanAndBars of cells do not break its table.
func TestAListHasWhatRanAndBars(t *testing.T) {
	file := filepath.Join(t.TempDir(), "commands.txt")
	if err := os.WriteFile(file, []byte("loss\trun A\nvanish\tkill B\nloss\trun A again\nschemes\trun C | D\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	all, err := measures{}.claims(logs{commands: file})
	if err != nil {
		t.Fatal(err)
	}
	some := asked(all, []string{"F6", "F10"})
	if len(some) != 2 || some[0].Command != "run C | D" || some[1].Command != "run A; kill B" {
		t.Fatalf("%+v", some)
	}
	var page strings.Builder
	some[0].Figure = "a | b"
	markdownClaims(&page, some)
	if s := page.String(); !strings.Contains(s, "a \\| b") || !strings.Contains(s, "- F10: `run A; kill B`") {
		t.Error(s)
	}
}

// TestAListsExitCode: what was not run is a failure always, the rest only for a judge.
func TestAListsExitCode(t *testing.T) {
	for _, c := range []struct {
		v     verdict
		judge bool
		code  int
	}{{shown, true, 0}, {figures, true, 0}, {missed, true, reports.ExitThreshold}, {missed, false, 0},
		{undecided, true, reports.ExitFailed},
		{fewCPUs, true, reports.ExitFailed}, {fewCPUs, false, 0}, {absent, false, reports.ExitFailed}} {
		if got := reports.Code(claimsOutcome([]claim{{Verdict: c.v}}, c.judge)); got != c.code {
			t.Errorf("%q, judged %v: %d, want %d", c.v, c.judge, got, c.code)
		}
	}
}

// TestDropsRiseWithWorkOfC2Alone: a rise inside the scatter, a fall on the way, and a c3 that
// drops too with a CPU for each of its threads are misses, and one repeat decides nothing.
func TestDropsRiseWithWorkOfC2Alone(t *testing.T) {
	dropping := func(of1000 float64) *reports.Result {
		r := stream(1)
		r.Counters = &reports.Counters{Server: []reports.DeviceCounters{{Counters: map[string]int64{
			"frames_dropped": int64(1000 * of1000), "tx_frames": int64(1000 * (1000 - of1000))}}}}
		return r
	}
	for name, c := range map[string]struct {
		c2   [3][]float64 // by work
		c3   float64
		want verdict
	}{
		"rises":                    {[3][]float64{{1, 2}, {3, 4}, {5, 6}}, 0.5, shown},
		"not at every step":        {[3][]float64{{1, 2}, {1, 2}, {5, 6}}, 0.5, shown},
		"by less than it scatters": {[3][]float64{{1, 5}, {3, 4}, {5, 6}}, 0.5, missed},
		"falls on the way":         {[3][]float64{{1, 2}, {8, 9}, {5, 6}}, 0.5, missed},
		"c3 too":                   {[3][]float64{{1, 2}, {3, 4}, {5, 6}}, 2, fewCPUs},
		"one repeat":               {[3][]float64{{1}, {3}, {5}}, 0, undecided},
		"nothing at 10 us":         {[3][]float64{{1, 2}, {}, {5, 6}}, 0, absent},
	} {
		m := measures{}
		for i, work := range dropWorks {
			m[streamOf("drops", raw, dropSize, dropDepth, work)] = repeated(dropping, c.c2[i]...)
			m[streamOf("drops", modelC1, dropSize, dropDepth, work)] = repeated(dropping, 7, 9)
			m[streamOf("drops", modelC3, dropSize, dropDepth, work)] = repeated(dropping, c.c3, c.c3)
		}
		if got := claimOf(t, m, logs{}, "F5"); got.Verdict != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		for _, rs := range m { // of four CPUs
			for _, r := range rs {
				r.Parameters = map[string]any{machineCPUs: 4}
			}
		}
		if got := claimOf(t, m, logs{}, "F5"); c.want == fewCPUs && got.Verdict != missed ||
			c.want != fewCPUs && got.Verdict != c.want {
			t.Errorf("%s with four CPUs: %+v", name, got)
		}
	}
}

// TestDepthsHaveNoBound: figures of them show nothing, and miss nothing.
func TestDepthsHaveNoBound(t *testing.T) {
	m := measures{}
	for _, size := range []int64{10_000, 100_000} {
		m[streamOf("schemes", raw, size, 1, 0)], m[streamOf("schemes", raw, size, 16, 0)] = repeated(stream, 1),
			repeated(stream, 2)
	}
	if c := claimOf(t, m, logs{}, "F9"); c.Verdict != figures ||
		!strings.HasPrefix(c.Figure, "no bound in the paper: figures only") {
		t.Errorf("%+v", c)
	}
}

// TestModelsAreJudgedWithFourCPUs: with two they are shown, and neither pass nor fail, as c1
// and c3 have two busy threads a process.
func TestModelsAreJudgedWithFourCPUs(t *testing.T) {
	at := func(cpus int, r *reports.Result) []*reports.Result {
		r.Parameters = map[string]any{machineCPUs: cpus}
		return []*reports.Result{r}
	}
	for cpus, want := range map[int]verdict{2: fewCPUs, 4: missed} {
		m := measures{}
		for i, s := range []string{raw, modelC3, modelC1} {
			m[latencyOf("threads", s, 64, 0)] = at(cpus, latency(float64(i+1)))
			m[streamOf("threads", s, 1024, 16, appWork)] = at(cpus, stream(float64(3-i)))
		}
		if c := claimOf(t, m, logs{}, "F4"); c.Verdict != want {
			t.Errorf("%v CPUs: %+v", cpus, c)
		}
	}
}

// TestEveryRolesCPUIsTold: what a second thread of a model took is not its application's, and
// models with more busy threads than CPUs are named.
func TestEveryRolesCPUIsTold(t *testing.T) {
	m := measures{}
	busy := func(cpus int, send, sendThread, recv, recvThread float64) []*reports.Result {
		r := stream(1)
		r.CPU = &reports.CPU{ClientSeconds: send, ServerSeconds: recv}
		thread := func(s float64) []reports.DeviceCounters {
			return []reports.DeviceCounters{{Counters: map[string]int64{"packet_thread_usec": int64(s * 1e6)}}}
		}
		r.Counters = &reports.Counters{Client: thread(sendThread), Server: thread(recvThread)}
		r.Parameters = map[string]any{machineCPUs: cpus}
		return []*reports.Result{r}
	}
	for cpus, want := range map[int]string{2: "; all of c1 and c3 wants 4 CPUs", 4: ""} {
		m[streamOf("threads", modelC1, 1024, 16, appWork)] = busy(cpus, 0.5, 0.3, 0.6, 0.5)
		m[streamOf("threads", raw, 1024, 16, appWork)] = busy(cpus, 0.2, 0, 0.25, 0)
		want := "CPU seconds with 5 us of work: c1 (application and thread of packets) 0.20 and 0.30 sending, 0.10 " +
			"and 0.50 receiving, c2 (all in one) 0.20 sending, 0.25 receiving, c3 (application and thread that " +
			"places) - sending, - receiving" + want
		if got := m.roles("threads", 1024, 16, appWork); got != want {
			t.Errorf("%v CPUs: %s\nwant %s", cpus, got, want)
		}
	}
}

// TestLossMustCostThroughputAndNoByte: what was not verified was not measured.
func TestLossMustCostThroughputAndNoByte(t *testing.T) {
	m := measures{}
	ended := filepath.Join(t.TempDir(), "vanished.txt")
	vanish := func(text string) {
		if err := os.WriteFile(ended, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f10 := func() claim { t.Helper(); return claimOf(t, m, logs{vanished: ended}, "F10") }
	vanish("killed\t0.01\t6\t5\n")
	lossy := func(params string, mb float64) *reports.Result {
		r := stream(mb)
		m[streamOf("loss", raw[:len(raw)-1]+params+")", 64<<10, 16, 0)] = []*reports.Result{r}
		return r
	}
	lossy("", 100)
	lossy(",loss=0.001,seed=1", 50)
	lossy(",loss=0.01,seed=1", 5)
	lossy(",dup=0.01,reorder=0.01,seed=1", 40)
	late := lossy(",delay=50us,jitter=20us,seed=1", 70)
	if c := f10(); c.Verdict != absent || !strings.Contains(c.Figure, "stalls -") {
		t.Errorf("without a stall, and without loss over AF_XDP: %+v", c)
	}
	over := overXDP[:len(overXDP)-1] + ",loss=0.001,dup=0.01,reorder=0.01,seed=1)"
	m[streamOf("lossxdp", over, 64<<10, 16, 0)] = []*reports.Result{stream(30)}
	for seconds, want := range map[float64]verdict{3.2: shown, 3.3: missed} { // half a round trip
		m[latencyOf("loss", raw[:len(raw)-1]+",loss=0.01,seed=1)", 64<<10, 0)] = []*reports.Result{
			{Latency: &reports.Latency{Max: seconds * 1e9}}}
		if c := f10(); c.Verdict != want {
			t.Errorf("%v s: %+v", seconds, c)
		}
	}
	m[latencyOf("loss", raw[:len(raw)-1]+",loss=0.01,seed=1)", 64<<10, 0)] = []*reports.Result{
		{Latency: &reports.Latency{Max: 1e9}}}
	for text, want := range map[string]verdict{"": absent, "killed\t0.01\t6\t5\ncut\t6.1\t6\t5\n": missed,
		"killed\t0.01\t6\t0\n": missed, "killed\t0.01\t6\t1\ncut\t5.1\t6\t5\n": shown} {
		if vanish(text); f10().Verdict != want {
			t.Errorf("%q: %+v", text, f10())
		}
	}
	delete(m, streamOf("lossxdp", over, 64<<10, 16, 0))
	if c := f10(); c.Verdict != absent {
		t.Errorf("without loss over AF_XDP: %+v", c)
	}
	m[streamOf("lossxdp", over, 64<<10, 16, 0)] = []*reports.Result{stream(30)}
	late.Verified = false
	if c := f10(); c.Verdict != absent {
		t.Errorf("%+v", c)
	}
}

// TestOneFailedCaseOfTheWireSuiteIsAMiss.
func TestOneFailedCaseOfTheWireSuiteIsAMiss(t *testing.T) {
	log := filepath.Join(t.TempDir(), "wire.txt")
	for text, want := range map[string]verdict{"pass 7\nunsupported 2\n": shown, "pass 7\nfail 1\n": missed,
		"": absent} {
		if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := claimOf(t, measures{}, logs{wire: log}, "F1"); c.Verdict != want {
			t.Errorf("%q: %+v", text, c)
		}
	}
}

// TestMissedBoundsAreTheExitCodeOnlyOfAJudge, and what was not measured always is.
func TestMissedBoundsAreTheExitCodeOnlyOfAJudge(t *testing.T) {
	for _, c := range []struct {
		v     targets.Verdict
		judge bool
		code  int
	}{{targets.Pass, true, 0}, {targets.Fail, false, 0}, {targets.Fail, true, reports.ExitThreshold},
		{targets.Undecided, false, 0},
		{targets.Undecided, true, reports.ExitFailed}, {targets.NotMeasured, false, reports.ExitFailed}} {
		if got := reports.Code(outcome([]line{{Verdict: c.v}}, c.judge)); got != c.code {
			t.Errorf("%q, judged %v: %d, want %d", c.v, c.judge, got, c.code)
		}
	}
}

// TestCPUsAreThoseOfTheMachine: GOMAXPROCS, which a process raises for threads that spin, is none.
func TestCPUsAreThoseOfTheMachine(t *testing.T) {
	r := latency(1)
	r.Stack = raw
	r.Parameters = map[string]any{"client": map[string]any{"gomaxprocs": 3}}
	b, err := json.Marshal(reports.Document{Schema: reports.SchemaID, Environment: reports.Environment{CPUs: 2},
		Results: []reports.Result{*r}})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "threads.1.json")
	if err := os.WriteFile(name, b, 0o600); err != nil {
		t.Fatal(err)
	}
	m := measures{}
	if err := m.document(name); err != nil || m.cpus("threads") != 2 {
		t.Errorf("%d CPUs: %v", m.cpus("threads"), err)
	}
}
