package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/reports"
)

const failIfUsage = `exit 3 when this holds, such as 'p99>10us', 'rate<3M', 'bw<1GB/s' or disturbed (some point was); repeatable`

// failIf is the flag --fail-if: each use adds one threshold. It is read when it
// is given, so that a mistake ends the command before anything is measured.
type failIf struct {
	thresholds []reports.Threshold
	disturbed  bool // also when the machine disturbed a point
}

// failIfDisturbed is the condition that is no threshold.
const failIfDisturbed = "disturbed"

func (f *failIf) register(flags *pflag.FlagSet, usage string) { flags.Var(f, "fail-if", usage) }

// Set implements pflag.Value.
func (f *failIf) Set(s string) error {
	if s == failIfDisturbed {
		f.disturbed = true
		return nil
	}
	t, err := reports.ParseThreshold(s, workload.Kinds())
	if err == nil {
		f.thresholds = append(f.thresholds, t)
	}
	return err
}

// Type implements pflag.Value; help prints it.
func (f *failIf) Type() string { return "condition" }

// String implements pflag.Value.
func (f *failIf) String() string {
	if len(f.thresholds) == 0 {
		return ""
	}
	return fmt.Sprint(f.thresholds)
}

// byMedians judges changes without the test.
func (f *failIf) byMedians() {
	for i, t := range f.thresholds {
		f.thresholds[i] = t.ByMedians()
	}
}

// absolute refuses what only a comparison can judge.
func (f *failIf) absolute() error {
	for _, t := range f.thresholds {
		if t.Relative() {
			return usage("read --fail-if", fmt.Errorf("threshold %q: %w", t.String(), reports.ErrRelative), "an absolute limit such as 'p99>10us'")
		}
	}
	return nil
}

// check prints one line for each threshold that the document misses and returns
// the error for them.
func (f *failIf) check(stderr io.Writer, doc *reports.Document) error {
	if lines := reports.DisturbanceLines(doc); f.disturbed && len(lines) > 0 {
		for _, l := range lines {
			fmt.Fprintln(stderr, l)
		}
		return &reports.ExitError{Code: reports.ExitThreshold, Operation: "check --fail-if", Err: errors.New("points were disturbed")}
	}
	if len(f.thresholds) == 0 {
		return nil
	}
	lines, err := reports.CheckThresholds(doc, f.thresholds)
	if err != nil {
		return usage("check thresholds", err, "")
	}
	return f.missed(stderr, lines)
}

func (f *failIf) missed(stderr io.Writer, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	for _, l := range lines {
		fmt.Fprintln(stderr, l)
	}
	err := errors.New("the threshold was missed")
	if n := len(f.thresholds); n > 1 {
		err = fmt.Errorf("%d of %d thresholds were missed", len(lines), n)
	}
	return &reports.ExitError{Code: reports.ExitThreshold, Operation: "check --fail-if", Err: err}
}
