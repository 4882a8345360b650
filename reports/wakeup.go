package reports

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Wakeup is the time in ns from the write to an eventfd until the thread that waited, on another CPU, has read the
// clock.
type Wakeup struct {
	P50     float64 `json:"p50"`
	P99     float64 `json:"p99"`
	Samples int     `json:"samples"`
}

// String reads "wakes a thread in 24.1 us, p99 80.3 us".
func (w *Wakeup) String() string {
	return "wakes a thread in " + view.Usec(w.P50) + " us, p99 " + view.Usec(w.P99) + " us"
}

// Sleeps tells whether threads sleep between two messages, so that the machine's wake-up is part of the figures.
func (r *Result) Sleeps() bool {
	return r.Polling == PollingEvent || r.Waits == PollingEvent
}

// WakeupLines say of the stacks that sleep what a wake-up takes; none where it was not measured.
func WakeupLines(d *Document) []string {
	w := d.Environment.Wakeup
	stacks := view.Unique(view.Only(Pointers(d.Results), (*Result).Sleeps), func(r *Result) string { return r.Stack })
	if w == nil || len(stacks) == 0 {
		return nil
	}
	verb := "sleeps"
	if len(stacks) > 1 {
		verb = "sleep"
	}
	s := fmt.Sprintf("%s %s between messages, and a wake-up of this machine takes %s us (p99 %s us)",
		strings.Join(stacks, ", "), verb, view.Usec(w.P50), view.Usec(w.P99))
	if d.Environment.Awake != "" {
		return []string{s + " with its CPUs kept awake: against polling stacks, also report a run without --awake"}
	}
	if from := d.Environment.IdleState; from != "" {
		s += " out of " + from
	}
	return []string{s + ": against polling stacks, also report a run with --awake"}
}

// idleState is the deepest idle state that the kernel may enter on the first CPU (cpuidle); empty where it knows of
// none.
func idleState(root fs.FS) string {
	dirs, err := fs.Glob(root, "sys/devices/system/cpu/cpu0/cpuidle/state*")
	if err != nil {
		return ""
	}
	name, deepest := "", int64(-1)
	for _, dir := range dirs {
		latency, err := strconv.ParseInt(readLine(root, path.Join(dir, "latency")), 10, 64)
		if err != nil || latency <= deepest || readLine(root, path.Join(dir, "disable")) == "1" {
			continue
		}
		name, deepest = readLine(root, path.Join(dir, "name")), latency
	}
	if name == "" {
		return ""
	}
	return fmt.Sprintf("idle state %s (%d us to leave)", name, deepest)
}
