package run

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/cli"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
)

const (
	// allTime is what is planned for such a run where its windows may be chosen; with what
	// no plan knows it takes at most 45 s, on two CPUs with nothing else to do.
	allTime = 41 * time.Second
	// allStart is for what comes before the first point: opening, the other process.
	allStart = 3 * time.Second
	// allBeside is what a point takes beside its windows and its warm-up: connections, the
	// idle phase of calls, verification. Measured as 0.1 to 0.4 s.
	allBeside  = 350 * time.Millisecond
	allWarmup  = 100 * time.Millisecond
	leastAll   = 100 * time.Millisecond
	mostWindow = time.Second
)

// fewPoints leaves of each workload and operation the smallest and the largest size: with
// all stacks side by side there is no time for more.
func fewPoints(points []engine.Point) []engine.Point {
	type group struct{ workload, op, arm string }
	ends := map[group][2]int{}
	for _, pt := range points {
		g := group{pt.Workload, pt.Op, pt.Variant}
		e, ok := ends[g]
		if !ok {
			e = [2]int{pt.Size, pt.Size}
		}
		ends[g] = [2]int{min(e[0], pt.Size), max(e[1], pt.Size)}
	}
	return slices.DeleteFunc(slices.Clone(points), func(pt engine.Point) bool {
		e := ends[group{pt.Workload, pt.Op, pt.Variant}]
		return pt.Size != e[0] && pt.Size != e[1]
	})
}

// sizeWindows chooses the windows of all arms, so that the whole takes no longer than
// allTime, and says how long it will take.
func (m *runner) sizeWindows() time.Duration {
	points, windows := 0, 0
	for _, a := range m.arms {
		for _, pt := range a.plan.Points {
			points++
			windows += max(pt.Windows, 1)
		}
	}
	if m.p.chooseTime {
		left := allTime - allStart - time.Duration(points)*(allBeside+allWarmup)
		window := min(max(left/time.Duration(max(windows, 1)), leastAll), mostWindow).Round(10 * time.Millisecond)
		for _, a := range m.arms {
			a.plan.Duration, a.plan.WarmupDuration, a.plan.WarmupIterations = window, allWarmup, 1000
		}
	}
	total := allStart
	for _, a := range m.arms {
		for _, pt := range a.plan.Points {
			total += allBeside + a.plan.PlannedTime(pt)
		}
	}
	return total
}

// announce says what is not measured, and of --transport all also what is, and how long it will take.
func (m *runner) announce(w io.Writer, total time.Duration) {
	columns := 1 << 20 // a line each
	if m.p.everything {
		columns = cli.Width(w)
	}
	say := func(format string, args ...any) {
		fmt.Fprintln(w, cli.Fill(fmt.Sprintf(format, args...), columns))
	}
	if m.p.everything {
		names := make([]string, len(m.arms))
		for i, a := range m.arms {
			names[i] = a.spec
		}
		say("Measures %d stacks side by side, in about %v: %s.", len(m.arms), total.Round(time.Second),
			strings.Join(names, ", "))
	}
	for _, l := range m.left {
		say("Left out: %s, %s.", l.Stack, l.Why)
	}
	if m.p.everything {
		fmt.Fprintln(w)
	}
	for _, a := range m.arms {
		if a.given == m.o.chosen && a.spec != stackspec.Embedded() {
			m.log.Info("measure the first RDMA device with an ACTIVE port", "transport", a.spec, "else",
				"--transport "+stackspec.Embedded())
		}
	}
}
