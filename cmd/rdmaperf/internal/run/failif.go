package run

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/reports"
)

const failIfUsage = `exit 3 when this holds, such as 'p99>10us', 'rate<3M', 'bw<1GB/s' or disturbed (some point was); repeatable`

// FailIf is the flag --fail-if: each use adds one threshold. It is read when it
// is given, so that a mistake ends the command before anything is measured.
type FailIf struct {
	Thresholds []reports.Threshold
	disturbed  bool // also when the machine disturbed a point
}

// failIfDisturbed is the condition that is no threshold.
const failIfDisturbed = "disturbed"

func (f *FailIf) Register(flags *pflag.FlagSet, usage string) { flags.Var(f, "fail-if", usage) }

// Set implements pflag.Value.
func (f *FailIf) Set(s string) error {
	if s == failIfDisturbed {
		f.disturbed = true
		return nil
	}
	t, err := reports.ParseThreshold(s, catalogue.Results())
	if err == nil {
		f.Thresholds = append(f.Thresholds, t)
	}
	return err
}

// Type implements pflag.Value; help prints it.
func (f *FailIf) Type() string { return "condition" }

// String implements pflag.Value.
func (f *FailIf) String() string {
	if len(f.Thresholds) == 0 {
		return ""
	}
	return fmt.Sprint(f.Thresholds)
}

// ByMedians judges changes without the test.
func (f *FailIf) ByMedians() {
	for i, t := range f.Thresholds {
		f.Thresholds[i] = t.ByMedians()
	}
}

// absolute refuses what only a comparison can judge.
func (f *FailIf) absolute() error {
	for _, t := range f.Thresholds {
		if t.Relative() {
			return cli.Usage("read --fail-if", fmt.Errorf("threshold %q: %w", t.String(), reports.ErrRelative),
				"an absolute limit such as 'p99>10us'")
		}
	}
	return nil
}

// check prints one line for each threshold that the document misses and returns
// the error for them.
func (f *FailIf) check(stderr io.Writer, doc *reports.Document) error {
	if lines := reports.DisturbanceLines(doc); f.disturbed && len(lines) > 0 {
		for _, l := range lines {
			fmt.Fprintln(stderr, l)
		}
		return &reports.ExitError{Code: reports.ExitThreshold, Operation: "check --fail-if",
			Err: errors.New("points were disturbed")}
	}
	if len(f.Thresholds) == 0 {
		return nil
	}
	lines, err := reports.CheckThresholds(doc, f.Thresholds)
	if err != nil {
		return cli.Usage("check thresholds", err, "")
	}
	return f.Missed(stderr, lines)
}

func (f *FailIf) Missed(stderr io.Writer, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	for _, l := range lines {
		fmt.Fprintln(stderr, l)
	}
	err := errors.New("the threshold was missed")
	if n := len(f.Thresholds); n > 1 {
		err = fmt.Errorf("%d of %d thresholds were missed", len(lines), n)
	}
	return &reports.ExitError{Code: reports.ExitThreshold, Operation: "check --fail-if", Err: err}
}
