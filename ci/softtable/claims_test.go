package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// claimOf is one claim of what was measured.
func claimOf(t *testing.T, m measures, wire, name string) claim {
	t.Helper()
	all, err := m.claims(wire)
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
	all, err := measures{}.claims("")
	if err != nil || len(all) != 11 {
		t.Fatalf("%d claims: %v", len(all), err)
	}
	for _, c := range all {
		if c.Verdict != absent {
			t.Errorf("%s: %s (%s)", c.Name, c.Verdict, c.Figure)
		}
	}
}

// TestOneSizeWhereOneCopyIsBehindIsEnough for the claim to be missed.
func TestOneSizeWhereOneCopyIsBehindIsEnough(t *testing.T) {
	m := measures{}
	for _, size := range copySizes {
		m[latencyOf("copies", raw, size, 0)], m[latencyOf("copies", twoCopies, size, 0)] = []*reports.Result{latency(1)}, []*reports.Result{latency(1.1)}
		m[streamOf("copies", raw, size, 16, 0)], m[streamOf("copies", twoCopies, size, 16, 0)] = []*reports.Result{stream(11)}, []*reports.Result{stream(10)}
	}
	if c := claimOf(t, m, "", "F3"); c.Verdict != shown {
		t.Errorf("%+v", c)
	}
	m[streamOf("copies", raw, 10_000, 16, 0)] = []*reports.Result{stream(9)}
	if c := claimOf(t, m, "", "F3"); c.Verdict != missed {
		t.Errorf("%+v", c)
	}
}

// TestModelsAreJudgedWholeWithFourCPUs: with two the streams are shown, and their claim
// is neither shown nor missed.
func TestModelsAreJudgedWholeWithFourCPUs(t *testing.T) {
	at := func(cpus float64, r *reports.Result) []*reports.Result {
		r.Parameters = map[string]any{"client": map[string]any{"gomaxprocs": cpus}}
		return []*reports.Result{r}
	}
	for cpus, want := range map[float64]verdict{2: fewCPUs, 4: missed} {
		m := measures{}
		for i, s := range []string{raw, modelC3, modelC1} {
			m[latencyOf("threads", s, 64, 0)] = at(cpus, latency(float64(i+1)))
			m[streamOf("threads", s, 1024, 16, appWork)] = at(cpus, stream(float64(3-i)))
		}
		if c := claimOf(t, m, "", "F4"); c.Verdict != want {
			t.Errorf("%v CPUs: %+v", cpus, c)
		}
	}
}

// TestLossMustCostThroughputAndNoByte: what was not verified was not measured.
func TestLossMustCostThroughputAndNoByte(t *testing.T) {
	m := measures{}
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
	if c := claimOf(t, m, "", "F10"); c.Verdict != shown {
		t.Errorf("%+v", c)
	}
	late.Verified = false
	if c := claimOf(t, m, "", "F10"); c.Verdict != absent {
		t.Errorf("%+v", c)
	}
}

// TestOneFailedCaseOfTheWireSuiteIsAMiss.
func TestOneFailedCaseOfTheWireSuiteIsAMiss(t *testing.T) {
	log := filepath.Join(t.TempDir(), "wire.txt")
	for text, want := range map[string]verdict{"pass 7\nunsupported 2\n": shown, "pass 7\nfail 1\n": missed, "": absent} {
		if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if c := claimOf(t, measures{}, log, "F1"); c.Verdict != want {
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
	}{{targets.Pass, true, 0}, {targets.Fail, false, 0}, {targets.Fail, true, reports.ExitThreshold}, {targets.Undecided, false, 0},
		{targets.Undecided, true, reports.ExitFailed}, {targets.NotMeasured, false, reports.ExitFailed}} {
		if got := reports.Code(outcome([]line{{Verdict: c.v}}, c.judge)); got != c.code {
			t.Errorf("%q, judged %v: %d, want %d", c.v, c.judge, got, c.code)
		}
	}
}
