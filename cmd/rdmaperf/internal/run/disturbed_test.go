package run

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

func TestFailIfDisturbed(t *testing.T) {
	for _, verdict := range []string{reports.VerdictQuiet, reports.VerdictDisturbed, reports.VerdictImpossible} {
		doc := &reports.Document{Results: []reports.Result{{Stack: "tcp", Workload: "latency", Op: "send",
			Disturbance: &reports.Disturbance{Verdict: verdict, Reasons: []string{"the reason"}}}}}
		var f FailIf
		if err := f.Set("disturbed"); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		err := f.check(&said, doc)
		if quiet := verdict == reports.VerdictQuiet; quiet != (err == nil) ||
			!quiet && (reports.Code(err) != reports.ExitThreshold || !strings.Contains(said.String(), "the reason")) {
			t.Errorf("%s: %v, %q", verdict, err, said.String())
		}
	}
}
