// Package targets holds measured figures against the project's goals: what the
// tables behind the comparison scripts of ci have in common, from the median over
// repeats to the exit code.
//
// It owns nothing: what a table shows, and which ratios it takes, is its own affair.
package targets

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Verdict is how a figure stands against its target.
type Verdict string

const (
	Pass        Verdict = "pass"
	Fail        Verdict = "fail"
	None        Verdict = "" // no target
	NotMeasured Verdict = "not measured"
)

// Target bounds a figure. The zero value is no target.
type Target struct {
	Bound float64 // what just passes; 0: no target
	Less  bool    // the bound is the most, else the least
}

// Sign is "<=" or ">=".
func (t Target) Sign() string {
	if t.Less {
		return "<="
	}
	return ">="
}

// Judge compares got, which stands for n measurements. Nothing measured is never a
// pass, and is said where there is no target, too.
func (t Target) Judge(got float64, n int) Verdict {
	switch {
	case n == 0:
		return NotMeasured
	case t.Bound == 0:
		return None
	case got == t.Bound || (got < t.Bound) == t.Less:
		return Pass
	}
	return Fail
}

// Median is the middle value, of an even number the mean of the middle two, of
// nothing 0: unlike NaN, that can be written as JSON.
func Median(xs []float64) float64 {
	s := slices.Sorted(slices.Values(xs))
	switch n := len(s); {
	case n == 0:
		return 0
	case n%2 == 1:
		return s[n/2]
	default:
		return (s[n/2-1] + s[n/2]) / 2
	}
}

// Outcome collects the verdicts of a table. The zero value is that of an empty one.
type Outcome struct {
	Failures       int // probes that failed, whatever lines they belong to
	missed, absent []string
	lines          int
}

// Add notes the verdict of the line called what.
func (o *Outcome) Add(what string, v Verdict) {
	o.lines++
	switch v {
	case Fail:
		o.missed = append(o.missed, what)
	case NotMeasured:
		o.absent = append(o.absent, what)
	}
}

// Err is the exit code with its reason, nil when every target is met. What could not
// be measured weighs more than a missed target, because then the table proves nothing.
func (o *Outcome) Err() error {
	failed := func(format string, args ...any) error {
		return &reports.ExitError{Code: reports.ExitFailed, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case o.lines == 0:
		return failed("nothing measured")
	case len(o.absent) > 0:
		return failed("not measured: %s", strings.Join(o.absent, "; "))
	case o.Failures > 0:
		return failed("%d probes failed", o.Failures)
	case len(o.missed) > 0:
		return &reports.ExitError{Code: reports.ExitThreshold, Err: fmt.Errorf("target missed: %s", strings.Join(o.missed, "; "))}
	}
	return nil
}

// WriteJSON writes a table to a file, for programs. An empty name writes nothing.
func WriteJSON(file string, table any) error {
	if file == "" {
		return nil
	}
	b, err := json.MarshalIndent(table, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}

// Exit ends the process as run says, with its error on stderr behind the script's name.
func Exit(script string, run func(args []string) error) {
	err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", script, err)
	}
	os.Exit(reports.Code(err))
}
