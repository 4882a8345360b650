package run

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

const failIfUsage = "exit 3 if this holds, such as 'p99>10us'\nrepeatable; also 'rate<3M', 'bw<1GB/s', " +
	"'interval.p99>1ms', 'interval.bw<1GB/s' (of the worst interval), or disturbed (CPU contention in any measurement)"

// FailIf is the flags --fail-if and --expect. A threshold is read when it is given, before anything is measured.
type FailIf struct {
	Thresholds []reports.Threshold
	disturbed  bool // also when the machine disturbed a point
}

func (f *FailIf) Register(flags *pflag.FlagSet, usage string) {
	flags.Var(f, "fail-if", usage)
	flags.Var((*expect)(f), "expect", "exit 3 unless this holds, such as 'p99<10us' or 'bw>=1GB/s'; repeatable")
}

type expect FailIf

// Set implements pflag.Value.
func (e *expect) Set(s string) error {
	t, err := reports.ParseThreshold(s, catalogue.Results())
	if err == nil {
		e.Thresholds = append(e.Thresholds, t.Expected())
	}
	return err
}

func (e *expect) Type() string   { return "condition" }
func (e *expect) String() string { return "" }

// Set implements pflag.Value.
func (f *FailIf) Set(s string) error {
	if s == "disturbed" {
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

// Any reports whether there is a condition.
func (f *FailIf) Any() bool { return len(f.Thresholds) > 0 || f.disturbed }

// ByMedians judges changes without the test.
func (f *FailIf) ByMedians() {
	for i, t := range f.Thresholds {
		f.Thresholds[i] = t.ByMedians()
	}
}

func (f *FailIf) absolute() error {
	for _, t := range f.Thresholds {
		if t.Relative() {
			return cli.Usage("read thresholds", fmt.Errorf("threshold %q: %w", t.String(), reports.ErrRelative),
				"an absolute limit such as 'p99>10us'")
		}
	}
	return nil
}

func (f *FailIf) check(stderr io.Writer, doc *reports.Document) error {
	if err := f.Disturbed(stderr, reports.DisturbanceLines(doc)); err != nil {
		return err
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

// Disturbed fails where some measurements were noisy, which lines say, and that was a condition.
func (f *FailIf) Disturbed(stderr io.Writer, lines []string) error {
	if !f.disturbed {
		return nil
	}
	return missed(stderr, lines, errors.New("some measurements were noisy"))
}

// missed is err with the lines that it is about, nil without any.
func missed(stderr io.Writer, lines []string, err error) error {
	if len(lines) == 0 {
		return nil
	}
	for _, l := range lines {
		fmt.Fprintln(stderr, l)
	}
	return &reports.ExitError{Code: reports.ExitThreshold, Operation: "check thresholds", Err: err}
}

func (f *FailIf) measured(steps []*step) error {
	for _, t := range f.Thresholds {
		if !slices.ContainsFunc(steps, func(s *step) bool {
			return slices.ContainsFunc(s.p.points, func(pt engine.Point) bool {
				return catalogue.Results().Of(pt.Workload).Measures(t.Metric(), s.p.base.Interval > 0)
			})
		}) {
			return cli.Usage("read thresholds", fmt.Errorf("threshold %q: no result of this run has %s", t, t.Metric()),
				"a figure of docs/reference/results.md that its workloads have; interval. needs --interval")
		}
	}
	return nil
}

func (f *FailIf) Missed(stderr io.Writer, lines []string) error {
	return missed(stderr, lines, fmt.Errorf("%d of %s failed", len(lines),
		view.Plural(int64(len(f.Thresholds)), "condition")))
}
