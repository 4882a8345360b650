package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/run"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/wakeup"
)

func TestRunSaysHowTheMachineWakes(t *testing.T) {
	run.MeasureWakeup = wakeup.Measure
	defer func() { run.MeasureWakeup = nil }()
	e := measure(t, aMoment...).Environment
	if w := e.Wakeup; w == nil || w.P50 <= 0 || w.P99 < w.P50 || w.Samples < 100 || e.Awake != "" {
		t.Errorf("wake-up %+v, awake %q", w, e.Awake)
	}
	if r := rdmaperf(t, append(slices.Clone(aMoment), "--details")...); !strings.Contains(
		strings.Join(strings.Fields(r.stdout), " "),
		"wakes a thread in ") {
		t.Errorf("the table does not say so:\n%s", r.stdout)
	}
}

// The run says what kept the CPUs awake; comparing it with one without is refused.
func TestAwakeStandsInTheEnvironment(t *testing.T) {
	t.Setenv(withWakeup, "1")
	p := start(t, append(aMoment, "--awake", "--format", "json")...)
	if code := p.wait(60e9); code == 77 {
		t.Skipf("not allowed here: %s", p.errs.String())
	} else if code != 0 {
		t.Fatalf("exit %d, %s", code, p.errs.String())
	}
	if e := document(t, p.out.Bytes()).Environment; e.Awake == "" || e.Wakeup == nil {
		t.Errorf("awake %q, wake-up %v", e.Awake, e.Wakeup)
	}
}
