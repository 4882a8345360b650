package cli

import (
	"errors"
	"syscall"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// A profile that does not fit on the disk is an error.
func TestProfileOnAFullDisk(t *testing.T) {
	p, err := StartProfile("/dev/full")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(); !errors.Is(err, syscall.ENOSPC) || reports.Code(err) != reports.ExitFailed {
		t.Errorf("%v, want that no space is left", err)
	}
}
