package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// An error quotes files and peers, which must not steer the terminal.
func TestErrorLinesDoNotSteerTheTerminal(t *testing.T) {
	if got := ErrorLine(errors.New("open x\x1b[2J\u202ey\nz")); got != "rdmaperf: open x?[2J?y; z" {
		t.Errorf("%q", got)
	}
}

// A panic of what only computes is an error that says where it was, with the exit code of a failure.
func TestAPanicWhileComputingIsAnErrorWithItsPlace(t *testing.T) {
	err := Computes(t.Context(), "make report", func() error { panic("boom") })
	if reports.Code(err) != reports.ExitFailed || !strings.Contains(ErrorLine(err), "internal error: boom, at cli_test.go:") {
		t.Errorf("%v", err)
	}
}
