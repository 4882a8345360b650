package reports

import (
	"strings"
	"testing"
)

func TestTheDeepestIdleStateIsNamed(t *testing.T) {
	const dir = "sys/devices/system/cpu/cpu0/cpuidle/"
	states := map[string]string{
		dir + "state0/name": "POLL\n", dir + "state0/latency": "0\n", dir + "state0/disable": "0\n",
		dir + "state1/name": "C1\n", dir + "state1/latency": "2\n",
		dir + "state2/name": "C6\n", dir + "state2/latency": "133\n", dir + "state2/disable": "0\n",
	}
	if got := idleState(tree(states)); got != "idle state C6 (133 us to leave)" {
		t.Errorf("%q", got)
	}
	states[dir+"state2/disable"] = "1\n"
	if got := idleState(tree(states)); got != "idle state C1 (2 us to leave)" {
		t.Errorf("with C6 disabled: %q", got)
	}
	states[dir+"state3/name"], states[dir+"state3/latency"] = "C1E\n", "2\n"
	if got := idleState(tree(states)); got != "idle state C1 (2 us to leave)" {
		t.Errorf("with a second state as deep: %q", got)
	}
	poll := map[string]string{dir + "state0/name": "POLL\n", dir + "state0/latency": "0\n"}
	if got := idleState(tree(poll)); got != "idle state POLL (0 us to leave)" {
		t.Errorf("with a state that takes no time to leave: %q", got)
	}
	if got := idleState(tree(nil)); got != "" {
		t.Errorf("without cpuidle: %q", got)
	}
}

// A figure of a stack that sleeps is next to what a wake-up takes, whichever way the
// machine was; one of a stack that polls does not.
func TestStacksThatSleepStandBesideTheWakeUp(t *testing.T) {
	d := &Document{Environment: Environment{IdleState: "idle state C6 (133 us to leave)",
		Wakeup: &Wakeup{P50: 24_100, P99: 80_300, Samples: 150}},
		Results: []Result{{Stack: "iwarp", Polling: "busy"}}}
	if l := WakeupLines(d); l != nil {
		t.Errorf("a stack that polls: %q", l)
	}
	d.Results = append(d.Results, Result{Stack: "tcp", Polling: "event"},
		Result{Stack: "tcp", Polling: "event", SizeBytes: 9})
	if l := WakeupLines(d); len(l) != 1 ||
		!strings.Contains(l[0], "tcp sleeps between messages, and a wake-up of this machine takes 24.10 us (p99 "+
			"80.30 us) out of idle state C6 (133 us to leave): ") || !strings.HasSuffix(l[0], "with --awake") {
		t.Errorf("%q", l)
	}
	d.Environment.Awake = "something"
	if l := WakeupLines(d); len(l) != 1 || !strings.HasSuffix(l[0], "without --awake") {
		t.Errorf("kept awake: %q", l)
	}
	d.Environment.Wakeup = nil
	if l := WakeupLines(d); l != nil {
		t.Errorf("not measured: %q", l)
	}
}
