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

// A disturbed measurement is taken again, as often as was stated at the most, and results say
// how many were discarded.
func TestDisturbedPointsAreTakenAgain(t *testing.T) {
	for _, c := range []struct{ most, quietAt, taken int }{{2, 0, 1}, {2, 1, 2}, {2, 2, 3}, {2, 9, 3}, {0, 9, 1}} {
		taken := 0
		results, err := quietest(c.most, func(before []reports.Result) ([]reports.Result, error) {
			if (before != nil) != (taken > 0) {
				t.Errorf("%+v: the result before the one at %d is %v", c, taken, before)
			}
			d := &reports.Disturbance{Verdict: reports.VerdictDisturbed}
			if taken == c.quietAt {
				d.Verdict = reports.VerdictQuiet
			}
			taken++
			return []reports.Result{{Disturbance: d}}, nil
		})
		if err != nil || taken != c.taken || results[0].Disturbance.Discarded != c.taken-1 {
			t.Errorf("%+v: taken %d times, %+v, %v", c, taken, results[0].Disturbance, err)
		}
	}
}
