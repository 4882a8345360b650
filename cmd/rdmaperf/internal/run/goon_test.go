package run

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/reports"
)

// A stack that makes no progress ends alone: the others go on, and the run ends with exit code 1 and the cause. A point
// that a stack cannot do is left out. What concerns all, and the last stack's end, end the run as they are.
func TestARunGoesOnWithoutAStackThatEnded(t *testing.T) {
	tr, err := new(stackspec.Set).Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	failed := func(code int) error {
		return &reports.ExitError{Code: code, Operation: "measure", Err: errors.New("the cause")}
	}
	var stderr bytes.Buffer
	a, b := &arm{tr: tr}, &arm{tr: tr}
	m := &runner{o: &Options{}, stderr: &stderr, doc: &reports.Document{}, arms: []*arm{a, b}}
	on := func(a *arm, err error) (*turn, error) {
		x := &turn{m: m, a: a, pt: engine.Point{Workload: "latency", Op: "send", Size: 64}}
		return x, m.goOn(context.Background(), x, err)
	}

	for _, code := range []int{reports.ExitFailed, reports.ExitCorruption, reports.ExitUsage, reports.ExitInterrupted} {
		if _, err := on(a, failed(code)); reports.Code(err) != code || a.lost {
			t.Errorf("code %d: %v, lost %v", code, err, a.lost)
		}
	}
	x, err := on(a, failed(reports.ExitNotRun))
	if err != nil || !x.unfit || a.lost || reports.Code(m.ended()) != reports.ExitNotRun {
		t.Errorf("a point that it cannot do: %v, unfit %v, lost %v, in the end %v", err, x.unfit, a.lost, m.ended())
	}
	m.doc.Results = []reports.Result{{}}
	if err := m.ended(); err != nil {
		t.Errorf("a run with results, and a point left out: %v", err)
	}
	if _, err := on(a, failed(reports.ExitPeer)); err != nil || !a.lost || b.lost {
		t.Errorf("no progress: %v", err)
	}
	if err := m.ended(); reports.Code(err) != reports.ExitFailed || !strings.Contains(err.Error(), "the cause") {
		t.Errorf("in the end: %v", err)
	}
	if want := "Left out: latency send 64 B over tcp, the cause."; strings.Count(stderr.String(), want) != 2 {
		t.Errorf("stderr:\n%s", stderr.String())
	}
	if _, err := on(b, failed(reports.ExitPeer)); reports.Code(err) != reports.ExitPeer {
		t.Errorf("the last stack: %v", err)
	}
}
