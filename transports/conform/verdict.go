package conform

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Sentinels for what went wrong around the cases.
var (
	// ErrUsage: a bad pattern, an unknown case or an empty selection.
	ErrUsage = errors.New("usage")
	// ErrNotRun: the transport could not be built here.
	ErrNotRun = errors.New("not run")
)

type usageError string

func (e usageError) Error() string         { return string(e) }
func (usageError) Is(target error) bool    { return target == ErrUsage }
func usagef(format string, a ...any) error { return usageError(fmt.Sprintf(format, a...)) }

// Verdict is the outcome of one case on one transport.
type Verdict string

const (
	Pass        Verdict = "pass"
	Fail        Verdict = "fail"        // the requirement is broken
	Unsupported Verdict = "unsupported" // a needed capability is not declared
	XFail       Verdict = "xfail"       // fails, and the ledger says why
	XPass       Verdict = "xpass"       // passes although the ledger expects a failure
	NotRun      Verdict = "notrun"      // the fixture could not be built, or the run ended before
	Error       Verdict = "error"       // the case itself broke: panic, hang, no memory
)

// Verdicts lists all of them in the order that reports use.
var Verdicts = []Verdict{Pass, Fail, Unsupported, XFail, XPass, NotRun, Error}

// Mismatch is a broken requirement: the outcomes that would have been legal, and the one that was seen.
type Mismatch struct {
	Want []string
	Got  string
}

// Error reads "want a or b, got c".
func (m *Mismatch) Error() string { return "want " + strings.Join(m.Want, " or ") + ", got " + m.Got }

// Result is one record of a report. Times are nanoseconds.
type Result struct {
	ID         string   `json:"id"`
	Clause     string   `json:"clause"`
	Unchecked  string   `json:"unchecked,omitempty"` // sections of the clause; see Case
	Level      string   `json:"level"`
	Transport  string   `json:"transport"`
	Verdict    Verdict  `json:"verdict"`
	Seed       uint64   `json:"seed"`
	DurationNS int64    `json:"duration_ns"`
	Want       []string `json:"want,omitempty"`
	Got        string   `json:"got,omitempty"`
	Evidence   string   `json:"evidence,omitempty"` // missing capability, notes of the case, stack of a panic
	Ledger     string   `json:"ledger,omitempty"`   // reason and source of the entry that applied

	Requirement string `json:"-"` // of the case, for those who read the other forms
}

func (v Verdict) executed() bool { return v == Pass || v == Fail || v == XFail || v == XPass }

// Red reports whether the result makes a run fail. A may never does; a should and an unexpected pass only under strict.
func (r *Result) Red(strict bool) bool {
	switch r.Verdict {
	case Error, NotRun:
		return true
	case Fail:
		return r.Level == Must.String() || strict && r.Level == Should.String()
	case XPass:
		return strict
	}
	return false
}

// Report is the outcome of one Run.
type Report struct {
	Transport string
	Strict    bool
	Seed      uint64
	Results   []Result
	Err       error // ErrUsage or ErrNotRun when the run could not start
}

// Red reports whether the run failed.
func (r *Report) Red() bool {
	return r.Err != nil || slices.ContainsFunc(r.Results, func(res Result) bool { return res.Red(r.Strict) })
}

// Counts is how many results have each verdict.
func (r *Report) Counts() map[Verdict]int {
	m := map[Verdict]int{}
	for i := range r.Results {
		m[r.Results[i].Verdict]++
	}
	return m
}

// Result finds a record by case ID; nil when there is none.
func (r *Report) Result(id string) *Result {
	if i := slices.IndexFunc(r.Results, func(res Result) bool { return res.ID == id }); i >= 0 {
		return &r.Results[i]
	}
	return nil
}

// Exit codes of the command line.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
	ExitNotRun = 77
)

// ExitCode puts usage errors before failures, and those before notrun. No report at all is a usage error.
func ExitCode(reports ...Report) int {
	if len(reports) == 0 {
		return ExitUsage
	}
	var failed, notRun bool
	for i := range reports {
		r := &reports[i]
		switch {
		case errors.Is(r.Err, ErrUsage), r.Err == nil && len(r.Results) == 0:
			return ExitUsage
		case errors.Is(r.Err, ErrNotRun):
			notRun = true
		case r.Red():
			failed = true
		}
	}
	switch {
	case failed:
		return ExitFailed
	case notRun:
		return ExitNotRun
	}
	return ExitOK
}
