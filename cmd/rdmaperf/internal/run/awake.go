package run

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/wakeup"
	"github.com/rdmaperf/rdmaperf/reports"
)

const (
	awakeHow   = "/dev/cpu_dma_latency at 0, and in a virtual machine threads of the idle class, too"
	AwakeChild = "awake-child"
)

// MeasureWakeup is a variable for tests, which do not wait for it a hundred times.
var MeasureWakeup = wakeup.Measure

const wakeupLimit = 3 * time.Second

func observeWakeup(ctx context.Context, log *slog.Logger, e *reports.Environment) {
	if MeasureWakeup == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wakeupLimit)
	defer cancel()
	f, err := MeasureWakeup(ctx, engine.AllowedCPUs())
	if err != nil {
		log.Debug("no figure of the machine's wake-up", "err", err)
		return
	}
	e.Wakeup = &reports.Wakeup{P50: float64(f.P50), P99: float64(f.P99), Samples: f.Samples}
}

func (o *Options) keepAwake(e *reports.Environment) (*wakeup.Awake, error) {
	if !o.awake {
		return new(wakeup.Awake), nil
	}
	var spinner *exec.Cmd
	if e.Hypervisor {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		spinner = exec.Command(self, AwakeChild)
	}
	a, err := wakeup.Hold(spinner)
	if err != nil {
		return nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "read --awake", Err: err,
			Hint: "root, or a run without --awake"}
	}
	e.Awake = a.String()
	return a, nil
}
