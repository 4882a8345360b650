package text

import (
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Of points of one name the report says once why they are unreliable, and what was
// compared and what failed of all of them.
func TestPointsOfOneNameAreRemarkedOnTogether(t *testing.T) {
	disturbed := func(verdict, why string) *reports.Disturbance {
		return &reports.Disturbance{Verdict: verdict, Reasons: []string{why}}
	}
	compared := func(messages, whole int64) *reports.Verification {
		return &reports.Verification{Mode: reports.VerifySample, Messages: messages, Numbers: messages, Whole: whole,
			Bytes: 64 * whole}
	}
	quiet := &reports.Result{Disturbance: disturbed(reports.VerdictQuiet, ""), Verification: compared(10, 10)}
	for name, c := range map[string]struct {
		points []*reports.Result
		want   string
	}{
		"nothing to say": {[]*reports.Result{quiet, quiet}, ""},
		"one disturbed": {[]*reports.Result{quiet, {Disturbance: disturbed(reports.VerdictDisturbed, "steal")}},
			"64 bytes: noise: steal\n"},
		"others, too": {[]*reports.Result{{Disturbance: disturbed(reports.VerdictDisturbed, "steal")}, quiet,
			{Disturbance: disturbed(reports.VerdictDisturbed, "faults")}},
			"64 bytes: noise: steal; 2 of 3 points are no better\n"},
		"a repeat": {[]*reports.Result{quiet,
			{Repeat: 2, Disturbance: disturbed(reports.VerdictDisturbed, "steal"), Errors: 4}},
			"64 bytes, repeat 2: noise: steal\n64 bytes: 4 failed operations\n"},
		"one impossible": {[]*reports.Result{{Disturbance: disturbed(reports.VerdictDisturbed, "steal")},
			{Disturbance: disturbed(reports.VerdictImpossible, "101 %")}},
			"64 bytes: impossible: 101 %; 2 of 2 points are no better\n"},
		"sums": {[]*reports.Result{{Verification: compared(10, 2), Errors: 1},
			{Verification: compared(30, 3), Errors: 2}},
			"64 bytes: of 40 messages 5 compared byte by byte and the numbers of 40, 320 bytes\n64 bytes: 3 failed " +
				"operations\n"},
		"nothing to hold": {[]*reports.Result{{Verification: &reports.Verification{Mode: reports.VerifyNone,
			Messages: 9}}}, ""},
	} {
		p := &printer{Options: Options{Width: 200}}
		p.remarksOf("64 bytes", c.points, func(r *reports.Result) string {
			if r.Repeat > 0 {
				return "64 bytes, repeat 2"
			}
			return "64 bytes"
		})
		if got := p.out.String(); !strings.Contains(got, c.want) || strings.Count(got, "\n") != strings.Count(c.want,
			"\n") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
