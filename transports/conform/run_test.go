package conform

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func memory() *Harness {
	return &Harness{Name: "mem", Open: func(context.Context) (rdma.Device, rdma.Device, string, error) {
		f := memdev.NewFabric(memdev.Config{})
		a, errA := f.Open("a")
		b, errB := f.Open("b")
		return a, b, "b:0", errors.Join(errA, errB)
	}}
}

func returns(err error) func(*Env) { return func(*Env) { mustRun(err) } }

var mismatch = &Mismatch{Want: []string{"this", "that"}, Got: "something else"}

func TestVerdicts(t *testing.T) {
	leaves := func(e *Env) {
		c := e.connect(connOpts{})
		src := e.region(c.a, "src", 8, localOnly)
		dst := e.region(c.b, "dst", 8, remoteAll)
		c.a.post(write(1, dst.at(0), src.all()))
	}
	scribbles := func(off int) func(*Env) {
		return func(e *Env) {
			c := e.connect(connOpts{})
			r := e.region(c.a, "r", 100, localOnly)
			r.buf.Bytes()[off]++
		}
	}
	for _, v := range []struct {
		c       Case
		want    Verdict
		got     string // part of Got or Evidence
		strict  bool
		wantRed bool
	}{
		{c: Case{ID: "x/pass", Run: returns(nil)}, want: Pass},
		{c: Case{ID: "x/fail", Run: returns(mismatch)}, want: Fail, got: "something else", wantRed: true},
		{c: Case{ID: "x/should", Level: Should, Run: returns(mismatch)}, want: Fail},
		{c: Case{ID: "x/should", Level: Should, Run: returns(mismatch)}, want: Fail, strict: true, wantRed: true},
		{c: Case{ID: "x/may", Level: May, Run: returns(mismatch)}, want: Fail, strict: true},
		{c: Case{ID: "x/error", Run: returns(errors.New("no memory"))}, want: Error, got: "no memory", wantRed: true},
		{c: Case{ID: "x/may-error", Level: May, Run: returns(errors.New("no memory"))}, want: Error, wantRed: true},
		{c: Case{ID: "x/panic", Run: func(*Env) { panic("oops") }}, want: Error, got: "oops", wantRed: true},
		{c: Case{ID: "x/stack", Run: func(*Env) { panic("oops") }}, want: Error, got: "run_test.go", wantRed: true},
		{c: Case{ID: "x/needs", Needs: rdma.Need{Features: rdma.FeatSinkNeedsRemoteWrite}, Run: returns(mismatch)},
			want: Unsupported, got: "device lacks feature sink_needs_remote_write"},
		{c: Case{ID: "x/without", Without: rdma.FeatSRQ | rdma.FeatFence, Run: returns(mismatch)}, want: Unsupported,
			got: "device declares srq,fence"},
		{c: Case{ID: "x/kill", Kill: true, Run: returns(mismatch)}, want: Unsupported,
			got: "harness cannot kill a device"},
		{c: Case{ID: "x/leftover", Run: leaves}, want: Fail, got: "one more: a send queue: send#1 success",
			wantRed: true},
		{c: Case{ID: "x/canary-before", Run: scribbles(canarySize - 1)}, want: Fail, got: "0xc6 at byte 4095",
			wantRed: true},
		{c: Case{ID: "x/canary-behind", Run: scribbles(canarySize + 100)}, want: Fail, got: "0xc6 at byte 0",
			wantRed: true},
	} {
		t.Run(v.c.ID, func(t *testing.T) {
			h := memory()
			rep := Run(t.Context(), h, Options{Cases: []Case{v.c}, Strict: v.strict})
			if err := h.Close(); err != nil {
				t.Errorf("close harness: %v", err)
			}
			r := rep.Results[0]
			if r.Verdict != v.want || !strings.Contains(r.Got+"\n"+r.Evidence, v.got) {
				t.Errorf("verdict %s, got %q, evidence %q; want %s with %q", r.Verdict, r.Got, r.Evidence, v.want,
					v.got)
			}
			if v.want == Fail && len(r.Want) == 0 {
				t.Error("a failure without what was wanted")
			}
			if rep.Red() != v.wantRed || (ExitCode(rep) == ExitFailed) != v.wantRed {
				t.Errorf("red %v, exit code %d; want red %v", rep.Red(), ExitCode(rep), v.wantRed)
			}
		})
	}
}

func TestLedgerVerdicts(t *testing.T) {
	l, err := ReadLedger(strings.NewReader(`{"entries":[
		{"case":"x/*","transport":"mem*","reason":"known","source":"thread 7","confirmed":"2026-01-31"},
		{"case":"y","transport":"other","reason":"not here","source":"-","confirmed":"2026-01-31"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	cases := []Case{
		{ID: "x/fail", Run: returns(mismatch)}, {ID: "x/pass", Run: returns(nil)},
		{ID: "x/error", Run: returns(errors.New("broken"))}, {ID: "y/fail", Run: returns(mismatch)},
	}
	rep := Run(t.Context(), memory(), Options{Cases: cases, Ledger: l})
	for id, want := range map[string]Verdict{"x/fail": XFail, "x/pass": XPass, "x/error": Error, "y/fail": Fail} {
		r := rep.Result(id)
		if r.Verdict != want {
			t.Errorf("%s: %s, want %s", id, r.Verdict, want)
		}
		if noted := strings.Contains(r.Ledger, "known (thread 7, confirmed 2026-01-31)"); noted != (want == XFail ||
			want == XPass) {
			t.Errorf("%s: ledger %q", id, r.Ledger)
		}
	}
	for _, v := range []struct {
		id          string
		red, strict bool
	}{{"x/fail", false, false}, {"x/pass", false, true}} {
		if r := rep.Result(v.id); r.Red(false) != v.red || r.Red(true) != v.strict {
			t.Errorf("%s: red %v, strict %v", v.id, r.Red(false), r.Red(true))
		}
	}
}

// A case of many short waits ends at its deadline, as one of a long wait does.
func TestACaseThatMovesOnHasADeadline(t *testing.T) {
	moves := func(e *Env) {
		for turn := 0; ; {
			e.waitFor("one turn more", func() bool { turn++; return turn%3 == 0 })
		}
	}
	r, err := NewDeviceRunner(memory(), Options{CaseTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	res := r.Case(t.Context(), Case{ID: "x/1", Run: moves})
	if res.Verdict != Fail || !strings.Contains(res.Got, "nothing more in") {
		t.Errorf("%s %q, want that nothing more came in time", res.Verdict, res.Got)
	}
}

func TestHangBecomesError(t *testing.T) {
	release := make(chan struct{})
	hangs := func(*Env) { <-release }
	var cases []Case
	for _, id := range []string{"x/1", "x/2", "x/3", "x/4"} {
		cases = append(cases, Case{ID: id, Run: hangs})
	}
	h := memory()
	r, err := NewDeviceRunner(h, Options{Cases: cases, CaseTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	r.grace = 20 * time.Millisecond
	for i, c := range cases {
		want := Error
		if i >= maxHangs {
			want = NotRun
		}
		if res := r.Case(t.Context(), c); res.Verdict != want || res.Evidence == "" || !res.Red(false) {
			t.Errorf("%s: %s %q, want %s with evidence", c.ID, res.Verdict, res.Got, want)
		}
	}
	close(release)
}

func TestRunEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cases := []Case{
		{ID: "x/1", Run: func(*Env) { cancel() }},
		{ID: "x/2", Run: returns(nil)},
	}
	seen := 0
	rep := Run(ctx, memory(), Options{Cases: cases, Progress: func(Result) { seen++ }})
	if v := []Verdict{rep.Results[0].Verdict, rep.Results[1].Verdict}; !slices.Equal(v, []Verdict{Pass, NotRun}) ||
		seen != 2 {
		t.Errorf("verdicts %v, %d seen", v, seen)
	}
	if code := ExitCode(rep); code != ExitFailed {
		t.Errorf("exit code %d of a run that was cut short", code)
	}
}

func TestRunEndsInsideACase(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cases := []Case{{ID: "x/1", Run: func(e *Env) {
		cancel()
		<-e.ctx.Done()
		panic(halt{e.ctx.Err()})
	}}}
	rep := Run(ctx, memory(), Options{Cases: cases})
	r := rep.Result("x/1")
	if r.Verdict != NotRun || !strings.Contains(r.Evidence, "run ended") || r.Got != "" {
		t.Errorf("%+v, want notrun because the run ended", r)
	}
}

func TestNotRun(t *testing.T) {
	h := &Harness{Name: "verbs", Open: func(context.Context) (rdma.Device, rdma.Device, string, error) {
		return nil, nil, "", errors.New("no rdma device here")
	}}
	cases := []Case{{ID: "x/1", Run: returns(nil)}, {ID: "x/2", Run: returns(nil)}}
	for name, rep := range map[string]Report{
		"pair fails":     Run(t.Context(), h, Options{Cases: cases}),
		"no harness":     NotRunReport("verbs", errors.New("no rdma device here"), Options{Cases: cases}),
		"whole, no pair": Run(t.Context(), h, Options{}),
	} {
		if !errors.Is(rep.Err, ErrNotRun) || ExitCode(rep) != ExitNotRun || !rep.Red() {
			t.Errorf("%s: %v, exit code %d, red %v", name, rep.Err, ExitCode(rep), rep.Red())
		}
		if n := rep.Counts()[NotRun]; n < 2 || n != len(rep.Results) {
			t.Errorf("%s: counts %v of %d", name, rep.Counts(), len(rep.Results))
		}
		if r := rep.Results[0]; !strings.Contains(r.Evidence, "no rdma device here") {
			t.Errorf("%s: evidence %q", name, r.Evidence)
		}
	}
	good := Run(t.Context(), memory(), Options{Cases: cases})
	bad := Run(t.Context(), memory(), Options{Cases: []Case{{ID: "x/1", Run: returns(mismatch)}}})
	away := Run(t.Context(), h, Options{Cases: cases})
	wrong := Run(t.Context(), h, Options{Cases: cases, Only: []string{"nothing/*"}})
	for _, v := range []struct {
		name string
		reps []Report
		want int
	}{
		{"good", []Report{good, good}, ExitOK}, {"bad", []Report{good, bad, away}, ExitFailed},
		{"away", []Report{good, away}, ExitNotRun}, {"usage", []Report{wrong, bad}, ExitUsage},
		{"none", nil, ExitUsage},
	} {
		if code := ExitCode(v.reps...); code != v.want {
			t.Errorf("exit code of %s = %d, want %d", v.name, code, v.want)
		}
	}
	if !errors.Is(wrong.Err, ErrUsage) {
		t.Errorf("empty selection: %v", wrong.Err)
	}
}

func TestCoverage(t *testing.T) {
	cases := []Case{
		{ID: "x/send", Needs: needSend}, {ID: "x/read", Needs: needRead}, {ID: "x/srq", Needs: needSRQ},
	}
	caps := rdma.Caps{Ops: rdma.Ops(rdma.OpSend, rdma.OpRead), Features: rdma.FeatSRQ}
	for _, v := range []struct {
		done []Verdict
		gap  string
	}{
		{[]Verdict{Pass, Fail, XFail}, ""},
		{[]Verdict{Pass, Unsupported, Pass}, "operation read"},
		{[]Verdict{Pass, Pass, Error}, "feature srq"},
		{[]Verdict{Pass, Pass}, "feature srq"},
		{[]Verdict{Pass, Pass, NotRun}, "feature srq"},
	} {
		r := &DeviceRunner{Runner: Runner{cases: cases}, caps: &caps, whole: true}
		for _, d := range v.done {
			r.done = append(r.done, Result{Verdict: d})
		}
		res, whole := r.Coverage()
		if !whole || (res.Verdict == Pass) != (v.gap == "") || !strings.Contains(res.Got+res.Evidence, v.gap) {
			t.Errorf("coverage after %v: %s %q, want gap %q", v.done, res.Verdict, res.Got, v.gap)
		}
		// Of a run that was broken off, nobody knows what it would have proven.
		if (res.Verdict == NotRun) != slices.Contains(v.done, NotRun) {
			t.Errorf("coverage after %v: %s", v.done, res.Verdict)
		}
	}
	r := &DeviceRunner{Runner: Runner{cases: cases}, caps: &caps}
	if _, whole := r.Coverage(); whole {
		t.Error("coverage of a part of the catalogue")
	}
}

func TestDescriptors(t *testing.T) {
	if openFiles() == 0 {
		if _, err := os.Stat("/proc/self/fd"); err == nil {
			t.Error("no open files counted")
		}
	}
}
