package cli

import (
	"errors"
	"testing"
)

// An error quotes files and peers, which must not steer the terminal.
func TestErrorLinesDoNotSteerTheTerminal(t *testing.T) {
	if got := ErrorLine(errors.New("open x\x1b[2J\u202ey\nz")); got != "rdmaperf: open x?[2J?y; z" {
		t.Errorf("%q", got)
	}
}
