package main

import (
	"fmt"
	"strings"

	"github.com/rdmaperf/rdmaperf/ci/targets"
	"github.com/rdmaperf/rdmaperf/reports"
)

// Margins of the ratio rdmaperf/perftest: how far from 1 counts as equal. A median is steadier
// than a mean, which a period is, and a rate is a period turned over.
const (
	latencyMargin = 0.03 // of the half round trip
	periodMargin  = 0.05 // of the time from post to post, and of rates
)

// Verdicts of a line, two-sided: they are those of the whole interval.
const (
	equal     targets.Verdict = "equal"     // all of it within the margin
	better    targets.Verdict = "better"    // all of it on rdmaperf's side of 1
	worse     targets.Verdict = "worse"     // all of it on perftest's
	undecided targets.Verdict = "undecided" // anything else
)

// leastPairs are as many as an interval of 95 % takes, whatever the distribution.
const leastPairs = 6

// decide says where the interval of n ratios lies. With less, a smaller ratio is better.
func decide(lo, hi float64, n int, margin float64, less bool) targets.Verdict {
	switch {
	case n == 0:
		return targets.NotMeasured
	case n < leastPairs:
		return undecided
	case lo >= 1/(1+margin) && hi <= 1+margin:
		return equal
	case hi < 1 && less, lo > 1 && !less:
		return better
	case lo > 1 && less, hi < 1 && !less:
		return worse
	}
	return undecided
}

// margin is that of a probe's figure, 0 for one that is only shown.
func (p probe) margin(period bool) float64 {
	switch {
	case !p.latency(), period && p.size == 64 && p.test != "atomic_lat":
		return periodMargin
	case p.size == 64 && p.test != "atomic_lat":
		return latencyMargin
	}
	return 0
}

// outcome is the exit code: a line that is worse weighs as a missed target, and one that
// could not be measured more. Undecided is a verdict, and no success either.
func (t *table) outcome() error {
	failed := func(format string, args ...any) error {
		return &reports.ExitError{Code: reports.ExitFailed, Err: fmt.Errorf(format, args...)}
	}
	by := map[targets.Verdict][]string{}
	for _, l := range t.Lines {
		by[l.Verdict] = append(by[l.Verdict], fmt.Sprintf("%s %s %d B %s", l.Device, l.Test, l.SizeBytes, l.Figure))
	}
	list := func(v targets.Verdict) string { return strings.Join(by[v], "; ") }
	switch {
	case len(t.Lines) == 0:
		return failed("nothing measured")
	case len(by[targets.NotMeasured]) > 0:
		return failed("not measured: %s", list(targets.NotMeasured))
	case len(t.Failures) > 0:
		return failed("%d probes failed", len(t.Failures))
	case len(by[worse]) > 0:
		return &reports.ExitError{Code: reports.ExitThreshold, Err: fmt.Errorf("worse than perftest: %s", list(worse))}
	case len(by[undecided]) > 0:
		return failed("undecided: %s", list(undecided))
	}
	return nil
}
