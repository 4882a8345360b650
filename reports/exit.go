package reports

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Exit codes of the command line. They are part of its interface.
const (
	ExitOK         int = 0  // everything asked for was done
	ExitFailed     int = 1  // a run or a case failed
	ExitUsage      int = 2  // the command line is wrong
	ExitThreshold  int = 3  // a threshold or a baseline was missed
	ExitCorruption int = 4  // data corruption
	ExitPeer       int = 5  // the peer is unreachable or incompatible
	ExitNotRun     int = 77 // not run: no device or no such capability

	// ended by Ctrl-C, 128 and the signal as shells count (bash(1)); 143 and 129 for SIGTERM and SIGHUP
	ExitInterrupted int = 130
)

// ExitError is an error with an exit code. Operation says what was being done; Hint is one line on what to try, or
// empty.
type ExitError struct {
	Code      int
	Operation string
	Err       error
	Hint      string
}

// Error returns "operation: cause".
func (e *ExitError) Error() string {
	switch {
	case e.Err == nil:
		return e.Operation
	case e.Operation == "":
		return e.Err.Error()
	}
	return e.Operation + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// Code is ExitOK for nil, the code of the first ExitError in the chain, else ExitFailed. An error never exits with 0.
func Code(err error) int {
	if err == nil {
		return ExitOK
	}
	var e *ExitError
	if errors.As(err, &e) && e.Code != ExitOK {
		return e.Code
	}
	return ExitFailed
}

// ExitMeaning is what an exit code says, and what a pipeline does with it.
type ExitMeaning struct {
	Code      int
	Means, Do string
}

// ExitMeanings are all exit codes, in ascending order.
var ExitMeanings = []ExitMeaning{
	{ExitOK, "done", "go on"},
	{ExitFailed, "a run or a case failed", "read the last line of stderr, the JUnit file or the report"},
	{ExitUsage, "wrong command line, or runs that are not comparable",
		"correct the command; `compare` names the conditions that differ"},
	{ExitThreshold, "a threshold or a baseline was missed", "the result is written all the same"},
	{ExitCorruption, "data corruption", "stop: the path is broken"},
	{ExitPeer, "the peer is unreachable, busy or incompatible", "check the address, the port and the version"},
	{ExitNotRun, "not run: a device or a capability is missing",
		"never count it as a pass; allow it only where the device may be absent"},
	{ExitInterrupted, "ended by Ctrl-C; 143 by SIGTERM, 129 by SIGHUP", "results up to then are written"},
}

// ExitCodes is one sentence of all exit codes, for help.
func ExitCodes() string {
	return "Exit codes: " + strings.Join(view.Each(ExitMeanings, func(m ExitMeaning) string {
		return fmt.Sprintf("%d %s", m.Code, m.Means)
	}), "; ") + "."
}
