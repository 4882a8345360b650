package conform

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

var ledgerSeeds = []struct {
	name, text string
	ok         bool
}{
	{"empty", `{"entries":[]}`, true},
	{"one", `{"entries":[{"case":"acc/qp-rights","transport":"verbs:siw*","reason":"not enforced","source":"siw_verbs.c","confirmed":"2026-01-31"}]}`, true},
	{"no reason", `{"entries":[{"case":"a/b","transport":"*","source":"x","confirmed":"2026-01-31"}]}`, false},
	{"bad date", `{"entries":[{"case":"a/b","transport":"*","reason":"r","source":"x","confirmed":"31.1.2026"}]}`, false},
	{"bad case glob", `{"entries":[{"case":"a/[","transport":"*","reason":"r","source":"x","confirmed":"2026-01-31"}]}`, false},
	{"bad transport glob", `{"entries":[{"case":"a/b","transport":"[","reason":"r","source":"x","confirmed":"2026-01-31"}]}`, false},
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
		l.find(&Case{ID: "a/b"}, "mem")
		again, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLedger(strings.NewReader(string(again))); err != nil {
			t.Errorf("%s is refused: %v", again, err)
		}
	})
}
