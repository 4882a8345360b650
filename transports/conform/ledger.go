package conform

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Ledger lists the known deviations; an entry that has become untrue shows as xpass.
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

	// Kernel is the range of Linux releases that deviate, "6.1..6.11", both ends included and either one optional; 6.11
	// includes 6.11.7. Empty means that the kernel has no part in it.
	Kernel string `json:"kernel,omitempty"`

	// Seen is the range of Linux releases on which this behaviour was seen, "6.1..6.12",
	// where nobody knows that it ended: a newer kernel is excused as well, with a remark,
	// and a case that passes there is no xpass. An entry has this or Kernel.
	Seen string `json:"seen,omitempty"`

	// Got narrows the entry to failures whose "got" contains the text, so that a
	// wide pattern does not excuse what has another cause. Empty: any failure.
	Got string `json:"got,omitempty"`
	// Sometimes says that whether a case fails is a matter of time: a pass is expected too, and is no xpass.
	Sometimes bool `json:"sometimes,omitempty"`
}

// ReadLedger parses and checks the JSON form: {"entries":[{…}]}. Fields are required but for kernel, seen, got and
// sometimes, and unknown ones are refused, so that a typo cannot excuse a failure.
func ReadLedger(r io.Reader) (*Ledger, error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields()
	var l Ledger
	if err := dec.Decode(&l); err != nil {
		return nil, usagef("read ledger: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, usagef("read ledger: data after the document")
	}
	for i := range l.Entries {
		if err := l.Entries[i].validate(); err != nil {
			return nil, usagef("read ledger: entry %d: %v", i+1, err)
		}
	}
	return &l, nil
}

func (e *Entry) validate() error {
	for _, f := range [...]struct{ name, value string }{
		{"case", e.Case}, {"transport", e.Transport}, {"reason", e.Reason}, {"source", e.Source},
		{"confirmed", e.Confirmed},
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
	for _, f := range [...]struct{ name, value string }{{"kernel", e.Kernel}, {"seen", e.Seen}} {
		if _, err := inKernelRange(f.value, "0"); err != nil {
			return fmt.Errorf("%s %q: %v", f.name, f.value, err)
		}
	}
	first, last, _ := strings.Cut(e.Seen, "..")
	switch {
	case e.Seen != "" && e.Kernel != "":
		return errors.New("kernel and seen exclude each other")
	case e.Seen != "" && (first == "" || last == ""):
		return fmt.Errorf("seen %q: want a range like 6.1..6.12, with both ends", e.Seen)
	}
	return nil
}

// inKernelRange takes releases as 6.1.0-38-amd64; an unknown one lies in no range but the empty one.
func inKernelRange(span, release string) (bool, error) {
	if span == "" {
		return true, nil
	}
	first, last, ok := strings.Cut(span, "..")
	if !ok || first+last == "" {
		return false, errors.New("want a range like 6.1..6.11, 6.1.. or ..6.11")
	}
	at := kernelVersion(release)
	in := len(at) > 0
	for i, end := range [...]string{first, last} {
		if end == "" {
			continue
		}
		v := kernelVersion(end)
		if kernelNumbers.FindString(end) != end || len(v) != strings.Count(end, ".")+1 {
			return false, fmt.Errorf("%q is no kernel version", end)
		}
		// Only as many components as the end has count: 6.11.7 is still 6.11.
		c := slices.Compare(at[:min(len(at), len(v))], v)
		if i == 0 && c < 0 || i == 1 && c > 0 {
			in = false
		}
	}
	return in, nil
}

var kernelNumbers = regexp.MustCompile(`^(0|[1-9]\d*)(\.(0|[1-9]\d*))*`)

func kernelVersion(release string) (v []int) {
	for part := range strings.SplitSeq(kernelNumbers.FindString(release), ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			break
		}
		v = append(v, n)
	}
	return v
}

// find returns the first entry that speaks of a case on a transport under a kernel, with the outcome that it has; nil
// for none. Failures look among all entries, passes among those that expect a failure for certain.
func (l *Ledger) find(c *Case, r *Result, kernel string) *Entry {
	if l == nil {
		return nil
	}
	for i := range l.Entries {
		e := &l.Entries[i]
		ok, _ := path.Match(e.Transport, r.Transport)
		switch {
		case !ok, !matches(e.Case, c):
			continue
		case r.Verdict == Fail && !strings.Contains(r.Got, e.Got), r.Verdict == Pass && e.Sometimes:
			continue
		}
		if in, _ := inKernelRange(e.Kernel, kernel); !in {
			continue
		}
		if in, _ := inKernelRange(e.Seen, kernel); in || e.newer(kernel) {
			return e
		}
	}
	return nil
}

func (e *Entry) newer(kernel string) bool {
	first, last, ok := strings.Cut(e.Seen, "..")
	if !ok {
		return false
	}
	since, _ := inKernelRange(first+"..", kernel)
	until, _ := inKernelRange(".."+last, kernel)
	return since && !until
}

// Apply turns fail into xfail and pass into xpass where an entry says so. An error is never excused.
func (l *Ledger) Apply(c *Case, r *Result, kernel string) {
	if r.Verdict != Fail && r.Verdict != Pass {
		return
	}
	e := l.find(c, r, kernel)
	if e == nil {
		return
	}
	newer := e.newer(kernel)
	switch {
	case r.Verdict == Fail:
		r.Verdict = XFail
	case !newer:
		r.Verdict = XPass
	}
	kernels := ""
	if e.Seen != "" {
		kernels = ", seen on kernels " + e.Seen
	}
	if newer {
		kernels += ", this one is newer"
	}
	if e.Kernel != "" {
		kernels = ", kernels " + e.Kernel
	}
	r.Ledger = fmt.Sprintf("%s (%s%s, confirmed %s)", e.Reason, e.Source, kernels, e.Confirmed)
}

// Stale returns the entries whose pattern names none of cases: a renamed case, or a typo.
func (l *Ledger) Stale(cases []Case) []Entry {
	if l == nil {
		return nil
	}
	var stale []Entry
	for _, e := range l.Entries {
		if !slices.ContainsFunc(cases, func(c Case) bool { return matches(e.Case, &c) }) {
			stale = append(stale, e)
		}
	}
	return stale
}
