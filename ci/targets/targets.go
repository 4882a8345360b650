// Package targets holds measured figures against the project's goals: what the
// tables behind the comparison scripts of ci have in common, from the median over
// repeats to the exit code.
//
// It owns nothing: what a table shows, and which ratios it takes, is its own affair.
package targets

import (
	"encoding/json"
	"fmt"
	"math"
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
	Undecided   Verdict = "undecided" // a miss that may be the scatter's
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

// JudgeAll says how the median of xs stands. It fails when all of its [Interval] misses
// the bound: a median that misses by less than it scatters says nothing.
func (t Target) JudgeAll(xs []float64) Verdict {
	v := t.Judge(Median(xs), len(xs))
	if lo, hi := Interval(xs); v == Fail && (t.Judge(lo, len(xs)) == Pass || t.Judge(hi, len(xs)) == Pass) {
		return Undecided
	}
	return v
}

// Interval is where the median of what xs are samples of lies, in 95 of 100 cases
// whatever the distribution: as many of the n lie below it as heads come in n throws
// of a coin. Fewer than 6 samples cannot tell so much, and have their least and most.
func Interval(xs []float64) (lo, hi float64) {
	n := len(xs)
	if n == 0 {
		return 0, 0
	}
	s := slices.Sorted(slices.Values(xs))
	k, p := 0, math.Pow(0.5, float64(n)) // p is that of k heads
	for sum := p; k < n/2; k++ {
		p *= float64(n-k) / float64(k+1)
		if sum += p; sum > 0.025 {
			break
		}
	}
	return s[k], s[n-1-k]
}

// Outcome collects the verdicts of a table. The zero value is that of an empty one.
type Outcome struct {
	Failures             int // probes that failed, whatever lines they belong to
	missed, absent, open []string
	lines                int
}

// Add notes the verdict of the line called what.
func (o *Outcome) Add(what string, v Verdict) {
	o.lines++
	switch v {
	case Fail:
		o.missed = append(o.missed, what)
	case NotMeasured:
		o.absent = append(o.absent, what)
	case Undecided:
		o.open = append(o.open, what)
	}
}

// Err is the exit code with its reason, nil when every target is met. What could not
// be measured weighs more than a missed target, because then the table proves nothing,
// and what is undecided less, but is no success.
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
		return &reports.ExitError{Code: reports.ExitThreshold,
			Err: fmt.Errorf("target missed: %s", strings.Join(o.missed, "; "))}
	case len(o.open) > 0:
		return failed("undecided, more repeats tell: %s", strings.Join(o.open, "; "))
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
