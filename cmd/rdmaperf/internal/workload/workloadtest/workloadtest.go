// Package workloadtest has what the tests of several workloads require of a run.
package workloadtest

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Results are those of a plan that has to succeed.
func Results(t testing.TB, e enginetest.Ends, plan engine.Plan) []reports.Result {
	t.Helper()
	results, err := enginetest.RunPoints(t, e, plan)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// Corrupts requires that a plan ends as a corruption whose text has want.
func Corrupts(t testing.TB, what string, e enginetest.Ends, plan engine.Plan, want string) {
	t.Helper()
	_, err := enginetest.RunPoints(t, e, plan)
	if reports.Code(err) != reports.ExitCorruption || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: code %d: %v, want %d and %q", what, reports.Code(err), err, reports.ExitCorruption, want)
	}
}

// Found requires err to be a corruption, and where nothing was bent none at all.
func Found(t testing.TB, what string, err error) {
	t.Helper()
	if found := reports.Code(err) == reports.ExitCorruption; found == (what == "nothing") || !found && err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

// Refused requires that a good plan has a shape, and that each bent one is a usage error.
func Refused(t testing.TB, caps transports.Caps, shape func(*engine.Setup) (*engine.Shape, error), good engine.Point,
	bent map[string]func(*engine.Plan)) {
	t.Helper()
	for what, bend := range bent {
		plan := enginetest.QuickPlan(good)
		if err := enginetest.Refusal(plan, caps, shape); err != nil {
			t.Fatal(err)
		}
		bend(&plan)
		if err := enginetest.Refusal(plan, caps, shape); reports.Code(err) != reports.ExitUsage {
			t.Errorf("%s: %v, want a usage error", what, err)
		}
	}
}

// Tampered requires that a change at each part of some bytes fails the run, and one of them as a corruption.
func Tampered(t *testing.T, bytes int64, back bool, run func(p *enginetest.Tamper) error, parts ...float64) {
	t.Helper()
	found := false
	for _, part := range parts {
		p := &enginetest.Tamper{T: t, At: int64(part * float64(bytes)), Back: back}
		err := run(p)
		if !p.Swapped.Load() || err == nil {
			t.Errorf("at %v: swapped %v, error %v", part, p.Swapped.Load(), err)
		}
		found = found || reports.Code(err) == reports.ExitCorruption
	}
	if !found {
		t.Error("no change was seen as one of the data")
	}
}

// Must ends a test with an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
