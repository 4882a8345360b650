package engine

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Values of Plan.Nice beside a nice value of 1 to MostNice.
const (
	NiceAuto = 0  // MostNice where the kernel is the device, else as the process
	NiceNone = -1 // as the process
)

// MostNice is the nice value (setpriority(2)) of a thread that takes what nobody else wants.
const MostNice = 19

// niceOf is the nice value of the workers of a point, 0 to leave it. A thread that polls a device which is the kernel
// itself takes half of the CPU from the kernel's threads; at the end of the queue it takes what is left.
func (sh *Shape) niceOf(p *Plan, client, server transports.Caps) int {
	if p.Nice != NiceAuto {
		return max(p.Nice, 0)
	}
	kernel := func(c transports.Caps) bool { return c.Unaided && c.Label == rdma.LabelSoft }
	if sh.Counted && sh.Polling != PollingEvent && kernel(client) && kernel(server) {
		return MostNice
	}
	return 0
}

// beNice makes the calling thread as nice as the point asks for. Who is nicer may not go back (RLIMIT_NICE).
func (sh *Shape) beNice() error {
	if sh.Nice == 0 {
		return nil
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, sh.Nice); err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "set nice value",
			Err:  fmt.Errorf("%d for a worker: %w", sh.Nice, err),
			Hint: "a value that is no lower than the process's, which nice(1) shows"}
	}
	return nil
}
