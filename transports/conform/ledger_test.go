package conform

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func ofKernel(quoted string) string {
	return `{"entries":[{"case":"a/b","transport":"*","reason":"r","source":"x","confirmed":"2026-01-31","kernel":` +
		quoted + `}]}`
}

var ledgerSeeds = []struct {
	name, text string
	ok         bool
}{
	{"empty", `{"entries":[]}`, true},
	{"one", `{"entries":[{"case":"acc/qp-rights","transport":"verbs:siw*","reason":"not enforced",` +
		`"source":"siw_verbs.c","confirmed":"2026-01-31"}]}`, true},
	{"kernels", ofKernel(`"6.1..6.11.7"`), true},
	{"timing", `{"entries":[{"case":"*","transport":"*","reason":"r","source":"x",` +
		`"confirmed":"2026-01-31","got":"flushed","sometimes":true}]}`, true},
	{"bad kernel", ofKernel(`"<6.12"`), false},
	{"bad kernel end", ofKernel(`"6.1..six"`), false},
	{"no kernel end", ofKernel(`".."`), false},
	{"no reason", `{"entries":[{"case":"a/b","transport":"*","source":"x","confirmed":"2026-01-31"}]}`, false},
	{"bad date", `{"entries":[{"case":"a/b","transport":"*","reason":"r","source":"x","confirmed":"31.1.2026"}]}`,
		false},
	{"bad case glob", `{"entries":[{"case":"a/[","transport":"*","reason":"r","source":"x","confirmed":"2026-01-31"}]}`,
		false},
	{"bad transport glob", `{"entries":[{"case":"a/b","transport":"[","reason":"r","source":"x",` +
		`"confirmed":"2026-01-31"}]}`, false},
	{"unknown field", `{"entries":[{"cases":"a/b"}]}`, false},
	{"not json", `entries:`, false},
	{"two documents", `{"entries":[]}{"entries":[]}`, false},
	{"nothing", ``, false},
}

func TestReadLedger(t *testing.T) {
	for _, v := range ledgerSeeds {
		_, err := ReadLedger(strings.NewReader(v.text))
		if (err == nil) != v.ok || err != nil && !errors.Is(err, ErrUsage) {
			t.Errorf("ReadLedger(%s) = %v, want ok %v", v.name, err, v.ok)
		}
	}
}

// FuzzReadLedger: what is accepted is valid, and survives being written again.
func FuzzReadLedger(f *testing.F) {
	for _, v := range ledgerSeeds {
		f.Add(v.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ReadLedger(strings.NewReader(text))
		if err != nil {
			return
		}
		l.Apply(&Case{ID: "a/b"}, &Result{Transport: "mem", Verdict: Fail, Got: "a flushed send"}, "6.1.0-38-amd64")
		again, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLedger(strings.NewReader(string(again))); err != nil {
			t.Errorf("%s is refused: %v", again, err)
		}
	})
}

func TestKernelRange(t *testing.T) {
	for _, test := range []struct {
		span, release string
		want          bool
	}{
		{"", "", true},
		{"", "6.1.0-38-amd64", true},
		{"6.1..6.11", "6.1.0-38-amd64", true},
		{"6.1..6.11", "6.11.7", true},
		{"6.1..6.11", "6.12.48+deb12-amd64", false},
		{"6.1..6.11", "6.0.19", false},
		{"6.1..6.11", "5.15.0-91-generic", false},
		{"6.2..", "6.12.0", true}, // numbers, not text
		{"6.2..", "6.1.99", false},
		{"..6.11.3", "6.11.3-azure", true},
		{"..6.11.3", "6.11.4", false},
		{"..7", "7.0-rc3", true},
		{"6.1..", "", false},
		{"..6.11", "unknown", false},
	} {
		if got, err := inKernelRange(test.span, test.release); got != test.want || err != nil {
			t.Errorf("inKernelRange(%q, %q) = %v, %v, want %v", test.span, test.release, got, err, test.want)
		}
	}
}

// TestLedgerNarrows: an entry excuses what it speaks of, and demands a failure only where it is certain of one.
func TestLedgerNarrows(t *testing.T) {
	l := &Ledger{Entries: []Entry{
		{Case: "*", Transport: "x", Got: "operation error", Sometimes: true, Reason: "timing"},
		{Case: "acc/rights", Transport: "x", Got: "success", Reason: "never checked"},
		{Case: "ord/late", Transport: "x", Kernel: "6.1..6.2", Reason: "old"},
	}}
	for _, test := range []struct {
		id, transport string
		verdict       Verdict
		got           string
		want          Verdict
		reason        string
	}{
		{"acc/rights", "x", Fail, "send#1 local operation error", XFail, "timing"},
		{"acc/rights", "x", Fail, "send#1 success", XFail, "never checked"},
		{"acc/rights", "x", Fail, "8 bytes changed", Fail, ""},
		{"acc/rights", "y", Fail, "send#1 success", Fail, ""},
		{"acc/rights", "x", Pass, "", XPass, "never checked"},
		{"acc/other", "x", Pass, "", Pass, ""},
		{"acc/other", "x", Fail, "send#1 success", Fail, ""},
		{"acc/other", "x", Error, "operation error", Error, ""},
		{"ord/late", "x", Fail, "anything", Fail, ""},
	} {
		r := Result{Transport: test.transport, Verdict: test.verdict, Got: test.got}
		l.Apply(&Case{ID: test.id}, &r, "6.12.1")
		if r.Verdict != test.want || !strings.HasPrefix(r.Ledger, test.reason) ||
			(r.Ledger == "") != (test.reason == "") {
			t.Errorf("%s on %s, %s %q: %s %q, want %s %q", test.id, test.transport, test.verdict, test.got, r.Verdict,
				r.Ledger, test.want, test.reason)
		}
	}
}

func TestLedgerStale(t *testing.T) {
	l := &Ledger{Entries: []Entry{{Case: "ord/sig-all"}, {Case: "ord/sig-*"}, {Case: "ord"}, {Case: "ord/no-such-case"},
		{Case: "nothing/*"}}}
	stale := l.Stale(Catalogue())
	if len(stale) != 2 || stale[0].Case != "ord/no-such-case" || stale[1].Case != "nothing/*" {
		t.Errorf("stale %+v, want the last two", stale)
	}
	if (*Ledger)(nil).Stale(Catalogue()) != nil {
		t.Error("no ledger has stale entries")
	}
}

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
