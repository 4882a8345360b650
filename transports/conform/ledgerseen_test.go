package conform

import (
	"strings"
	"testing"
)

// What was seen on some kernels is excused on newer ones, with a remark, and a pass there is none to complain of.
func TestABehaviourThatWasSeenIsExpectedOfNewerKernels(t *testing.T) {
	l, err := ReadLedger(strings.NewReader(`{"entries":[{"case":"acc/*","transport":"verbs:siw0","reason":"r","source":"s",
		"confirmed":"2026-11-20","seen":"6.1..6.12","got":"success"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kernel, got   string
		verdict, want Verdict
		remark        bool
	}{
		{"6.1.0-56-amd64", "success", Fail, XFail, false},
		{"6.12.40", "success", Pass, XPass, false},
		{"6.17.0-1008-azure", "success", Fail, XFail, true},
		{"6.17.0-1008-azure", "success", Pass, Pass, true},
		{"6.17.0-1008-azure", "changed bytes", Fail, Fail, false}, // another behaviour
		{"5.15.0-1-azure", "success", Fail, Fail, false},          // older: nobody looked
		{"unknown", "success", Fail, Fail, false},
	} {
		r := Result{Transport: "verbs:siw0", Verdict: c.verdict, Got: c.got}
		l.Apply(&Case{ID: "acc/read-rights"}, &r, c.kernel)
		if r.Verdict != c.want || strings.Contains(r.Ledger, "seen on kernels 6.1..6.12, this one is newer") != c.remark {
			t.Errorf("%s, %s: %s (%s), want %s, remark %v", c.kernel, c.got, r.Verdict, r.Ledger, c.want, c.remark)
		}
	}
	for _, wrong := range []string{`"seen":"6.1.."`, `"seen":"6.1..6.12","kernel":"6.1..6.12"`, `"seen":"newer"`} {
		if _, err := ReadLedger(strings.NewReader(`{"entries":[{"case":"a/b","transport":"t","reason":"r","source":"s",
			"confirmed":"2026-11-20",` + wrong + `}]}`)); err == nil {
			t.Errorf("%s: taken", wrong)
		}
	}
}
