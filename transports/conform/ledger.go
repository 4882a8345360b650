package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"time"
)

// Ledger lists the deviations that are known. It is versioned with the project
// and reviewed like code; an entry that has become untrue shows as xpass.
type Ledger struct {
	Entries []Entry `json:"entries"`
}

// Entry says that cases fail on transports, why, and who says so.
type Entry struct {
	Case      string `json:"case"`      // glob as in Select
	Transport string `json:"transport"` // glob of path.Match over the stack name
	Reason    string `json:"reason"`
	Source    string `json:"source"`    // thread, commit or document
	Confirmed string `json:"confirmed"` // date of the last look, 2006-01-02
}

// ReadLedger parses and checks the JSON form: {"entries":[{…}]}. Every field is
// required and unknown ones are refused, so that a typo cannot excuse a failure.
func ReadLedger(r io.Reader) (*Ledger, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var l Ledger
	if err := dec.Decode(&l); err != nil {
		return nil, fmt.Errorf("read ledger: %v: %w", err, ErrUsage)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read ledger: data after the document: %w", ErrUsage)
	}
	for i := range l.Entries {
		if err := l.Entries[i].validate(); err != nil {
			return nil, fmt.Errorf("read ledger: entry %d: %v: %w", i+1, err, ErrUsage)
		}
	}
	return &l, nil
}

func (e *Entry) validate() error {
	for _, f := range [...]struct{ name, value string }{
		{"case", e.Case}, {"transport", e.Transport}, {"reason", e.Reason}, {"source", e.Source}, {"confirmed", e.Confirmed},
	} {
		if f.value == "" {
			return fmt.Errorf("%s is missing", f.name)
		}
	}
	for _, pat := range [...]string{e.Case, e.Transport} {
		if _, err := path.Match(pat, ""); err != nil {
			return fmt.Errorf("pattern %q: %v", pat, err)
		}
	}
	if _, err := time.Parse(time.DateOnly, e.Confirmed); err != nil {
		return fmt.Errorf("confirmed %q: want a date like 2006-01-02", e.Confirmed)
	}
	return nil
}

// find returns the first entry for a case on a transport, or nil.
func (l *Ledger) find(c *Case, transport string) *Entry {
	if l == nil {
		return nil
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		if ok, _ := path.Match(e.Transport, transport); ok && matches(e.Case, c) {
			return e
		}
	}
	return nil
}

// apply turns fail into xfail and pass into xpass where an entry expects the
// failure. An error is never excused: it says nothing about the requirement.
func (l *Ledger) apply(c *Case, r *Result) {
	e := l.find(c, r.Transport)
	if e == nil {
		return
	}
	switch r.Verdict {
	case Fail:
		r.Verdict = XFail
	case Pass:
		r.Verdict = XPass
	default:
		return
	}
	r.Ledger = fmt.Sprintf("%s (%s, confirmed %s)", e.Reason, e.Source, e.Confirmed)
}
