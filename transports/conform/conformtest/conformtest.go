// Package conformtest runs the conformance suite as Go tests: a subtest a case, named by its ID.
//
// The harness stays the caller's: Run does not close it. Cases run one after another, as
// the harness's devices may be shared.
package conformtest

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/transports/conform"
)

// Run executes the selected cases. A red verdict fails its subtest; an undeclared capability skips it with the
// evidence; a failure that is not red, or that the ledger expects, is logged. A harness that cannot supply devices is a
// failure: whoever asked for it by name has to know.
func Run(t *testing.T, h *conform.Harness, o conform.Options) {
	t.Helper()
	r, err := conform.NewDeviceRunner(h, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range r.Selected() {
		t.Run(c.ID, func(t *testing.T) { judge(t, r.Case(t.Context(), c), o.Strict) })
	}
	if res, whole := r.Coverage(); whole {
		t.Run(res.ID, func(t *testing.T) { judge(t, res, o.Strict) })
	}
}

func judge(t *testing.T, r conform.Result, strict bool) {
	t.Helper()
	switch {
	case r.Verdict == conform.Unsupported:
		t.Skipf("unsupported: %s", r.Evidence)
	case r.Red(strict):
		t.Errorf("%s (%s, %s, seed %d)\nwant %q\ngot  %s\n%s", r.Verdict, r.Level, r.Clause, r.Seed, r.Want, r.Got,
			r.Evidence)
	case r.Verdict != conform.Pass:
		t.Logf("%s (%s, %s): want %q, got %s %s", r.Verdict, r.Level, r.Clause, r.Want, r.Got, r.Ledger)
	case r.Evidence != "":
		t.Log(r.Evidence)
	}
}
