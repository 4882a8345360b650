package reports

import (
	"slices"
	"testing"
	"time"
)

func TestWindowsAreJudgedByWhatTheMachineTook(t *testing.T) {
	ms := int64(time.Millisecond)
	for _, c := range []struct {
		what    string
		d       Disturbance
		verdict string
		reasons []string
	}{
		{"nothing known", Disturbance{}, VerdictQuiet, nil},
		{"little", Disturbance{Client: &Noise{Threads: 1, RunQueueWaitNs: 9 * ms, InvoluntarySwitches: 900}}, VerdictQuiet, nil},
		{"one of many threads", Disturbance{Client: &Noise{Threads: 4, RunQueueWaitNs: 36 * ms}}, VerdictQuiet, nil},
		{"preempted", Disturbance{Server: &Noise{Threads: 2, RunQueueWaitNs: 246 * ms}}, VerdictDisturbed, []string{"server's threads waited for a CPU for 12.3 % of the window (limit 1 %)"}},
		{"stolen", Disturbance{Client: &Noise{Threads: 1, StealNs: 50 * ms}}, VerdictDisturbed, []string{"client's hypervisor took CPUs away for 5.0 % of the window (limit 1 %)"}},
		{"paged", Disturbance{Client: &Noise{Threads: 1, MajorFaults: 2}}, VerdictDisturbed, []string{"client read 2 pages from disk in the window"}},
	} {
		c.d.Judge(time.Second)
		if c.d.Verdict != c.verdict || !slices.Equal(c.d.Reasons, c.reasons) {
			t.Errorf("%s: %s, %q; want %s, %q", c.what, c.d.Verdict, c.d.Reasons, c.verdict, c.reasons)
		}
	}
	d := Disturbance{Client: &Noise{Threads: 1, RunQueueWaitNs: 100 * ms}}
	d.Contradict("a probe is faster beside bulk")
	if d.Judge(time.Second); d.Verdict != VerdictImpossible || len(d.Reasons) != 2 || d.Reasons[0] != "a probe is faster beside bulk" {
		t.Errorf("%+v", d)
	}
}
