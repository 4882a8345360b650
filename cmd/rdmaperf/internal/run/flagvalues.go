package run

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

func parseWarmup(s string) (int64, time.Duration, error) {
	switch s {
	case "auto":
		return 1000, 200 * time.Millisecond, nil
	case "none", "0":
		return 0, 0, nil
	}
	if n, err := strconv.ParseInt(s, 10, 40); err == nil && n > 0 {
		return n, 0, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, 0, fmt.Errorf("%q: want auto, none, a number of operations or a time such as 200ms", s)
	}
	return 0, d, nil
}

// parseNice reads --nice. 0 asks for what auto would change.
func parseNice(s string) (int, error) {
	if s == "auto" {
		return engine.NiceAuto, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > engine.MostNice {
		return 0, fmt.Errorf("%q: want auto or a nice value of 0 to %d", s, engine.MostNice)
	}
	if n == 0 {
		return engine.NiceNone, nil
	}
	return n, nil
}

// parsePin reads --pin; CPUs are -1 without pinning. alone: the server is on this machine, too.
func parsePin(s string, threads int, allowed []int, alone bool) (auto bool, client, server int, err error) {
	switch s {
	case "auto":
		return true, -1, -1, nil
	case "none":
		return false, -1, -1, nil
	}
	if _, err := fmt.Sscanf(s+"\n", "%d,%d\n", &client, &server); err != nil || client < 0 || server < 0 ||
		client > 1023 || server > 1023 {
		return false, -1, -1, fmt.Errorf("%q: want auto, none or two CPUs such as 3,2", s)
	}
	if threads > 1 {
		return false, -1, -1, fmt.Errorf("%q: one CPU a side cannot hold %d threads", s, threads)
	}
	for _, side := range []struct {
		name string
		cpu  int
		here bool
	}{{"client", client, true}, {"server", server, alone}} {
		if side.here && !slices.Contains(allowed, side.cpu) {
			return false, -1, -1, fmt.Errorf("%q: the %s's CPU %d is none that this process may run on: %s", s,
				side.name, side.cpu, ranges(allowed))
		}
	}
	return false, client, server, nil
}

// ranges prints rising numbers as taskset(1) takes them: 0-3,8.
func ranges(rising []int) string {
	var parts []string
	for i := 0; i < len(rising); {
		k := i
		for k+1 < len(rising) && rising[k+1] == rising[k]+1 {
			k++
		}
		if part := strconv.Itoa(rising[i]); k > i {
			parts = append(parts, part+"-"+strconv.Itoa(rising[k]))
		} else {
			parts = append(parts, part)
		}
		i = k + 1
	}
	return strings.Join(parts, ",")
}

// LoopAuto leaves the loop of ping-pongs to what the stacks have.
const LoopAuto = "auto"

func parseLoop(s string) (string, error) {
	switch s {
	case LoopAuto:
		return "", nil
	case engine.LoopPlain, engine.LoopProvider:
		return s, nil
	}
	return "", fmt.Errorf("%q: want %s, %s or %s", s, LoopAuto, engine.LoopPlain, engine.LoopProvider)
}

// shareLoop gives all stacks the plain loop where one has no other, unless --loop says which: a ratio of two loops is
// none of two stacks. A device with a clock of its own is timed by its provider.
func (m *runner) shareLoop() {
	if m.p.base.Loop != "" {
		return
	}
	var timed []*arm
	for _, a := range m.arms {
		if a.tr.Caps().Clock == nil && slices.ContainsFunc(a.plan.Points, func(pt engine.Point) bool {
			return pt.Needs.PingPong
		}) {
			timed = append(timed, a)
		}
	}
	if !slices.ContainsFunc(timed, func(a *arm) bool { return !a.tr.Caps().PingPong }) {
		return
	}
	for _, a := range timed {
		a.plan.Loop = engine.LoopPlain
	}
}
