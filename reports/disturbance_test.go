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
		{"little", Disturbance{Client: &Noise{Threads: 1, RunQueueWaitNs: 49 * ms, InvoluntarySwitches: 900}},
			VerdictQuiet, nil},
		{"one of many threads", Disturbance{Client: &Noise{Threads: 4, RunQueueWaitNs: 196 * ms}}, VerdictQuiet, nil},
		{"preempted", Disturbance{Server: &Noise{Threads: 2, RunQueueWaitNs: 246 * ms}}, VerdictDisturbed,
			[]string{"server's threads waited for a CPU for 12.3 % of the window (limit 5 %)"}},
		{"preempted around the window, too", Disturbance{Client: &Noise{Threads: 1, RunQueueWaitNs: 1038 * ms}},
			VerdictDisturbed, []string{"client's threads waited for a CPU for 100.0 % of the window (limit 5 %)"}},
		{"stolen", Disturbance{Client: &Noise{Threads: 1, StealNs: 60 * ms}}, VerdictDisturbed,
			[]string{"client's hypervisor took CPUs away for 6.0 % of the window (limit 5 %)"}},
		{"lost", Disturbance{Server: &Noise{Threads: 1, Sockets: 1, Segments: 20_000, Retransmits: 21}},
			VerdictDisturbed, []string{"server's TCP sent 21 of 20000 segments again (limit 0.1 %)"}},
		{"lost one of many", Disturbance{Client: &Noise{Threads: 1, Sockets: 1, Segments: 20_000, Retransmits: 20}},
			VerdictQuiet, nil},
		{"held back", Disturbance{Client: &Noise{Threads: 1, Sockets: 1, Segments: 9, WindowLimitedNs: 40 * ms}},
			VerdictQuiet, nil},
		{"round trips held back", Disturbance{closedWindows: true, Client: &Noise{Threads: 1, Sockets: 1, Segments: 9,
			WindowLimitedNs: 40 * ms}}, VerdictDisturbed,
			[]string{"client's TCP waited for its peer's window for 4.0 % of the window (limit 1 %)"}},
		{"paged", Disturbance{Client: &Noise{Threads: 1, MajorFaults: 2}}, VerdictDisturbed,
			[]string{"client read 2 pages from disk in the window"}},
	} {
		c.d.Judge(time.Second)
		if c.d.Verdict != c.verdict || !slices.Equal(c.d.Reasons, c.reasons) {
			t.Errorf("%s: %s, %q; want %s, %q", c.what, c.d.Verdict, c.d.Reasons, c.verdict, c.reasons)
		}
	}
	// A limit itself is not above it; what is long enough to be noise is.
	for _, c := range []struct {
		what           string
		client, server Noise
		window         time.Duration
		verdict        string
		share          float64
	}{
		{"as much as the limit", Noise{Threads: 1, RunQueueWaitNs: 50 * ms}, Noise{}, time.Second, VerdictQuiet, 0.05},
		{"the least noise", Noise{Threads: 1, RunQueueWaitNs: 2 * ms}, Noise{}, 10 * time.Millisecond, VerdictDisturbed, 0.2},
		{"less than that", Noise{Threads: 1, RunQueueWaitNs: 2*ms - 1}, Noise{}, 10 * time.Millisecond, VerdictQuiet,
			0.1999999},
		{"two ticks of steal", Noise{Threads: 1, StealNs: 20 * ms}, Noise{}, 100 * time.Millisecond, VerdictDisturbed, 0.2},
		{"one tick of steal", Noise{Threads: 1, StealNs: 10 * ms}, Noise{}, 100 * time.Millisecond, VerdictQuiet, 0.1},
		{"no threads", Noise{RunQueueWaitNs: 500 * ms}, Noise{}, time.Second, VerdictQuiet, 0},
		{"no window", Noise{Threads: 1, RunQueueWaitNs: 500 * ms}, Noise{}, 0, VerdictQuiet, 0},
		{"30 ms of the client and 20 of the server, a thread", Noise{Threads: 2, RunQueueWaitNs: 60 * ms},
			Noise{Threads: 1, RunQueueWaitNs: 20 * ms}, time.Second, VerdictQuiet, 0.03},
	} {
		d := Disturbance{Client: &c.client, Server: &c.server}
		if d.Judge(c.window); d.Verdict != c.verdict || d.Share() != c.share {
			t.Errorf("%s: %s of %v, %q, want %s of %v", c.what, d.Verdict, d.Share(), d.Reasons, c.verdict, c.share)
		}
	}
	// What the run's own threads take from each other is no noise; a hypervisor is.
	own := Disturbance{Client: &Noise{Threads: 1, RunQueueWaitNs: 400 * ms}, Server: &Noise{Threads: 2,
		RunQueueWaitNs: 200 * ms}}
	own.OthersRan(Others{70 * time.Millisecond, 80 * time.Millisecond})
	if own.Judge(time.Second); own.Share() != 0.08 || !slices.Equal(own.Reasons, []string{
		"client's threads waited for a CPU for 7.0 % of the window (limit 5 %)",
		"server's threads waited for a CPU for 7.0 % of the window (limit 5 %)"}) {
		t.Errorf("others had 70 or 80 ms: %v, %q", own.Share(), own.Reasons)
	}
	alone := Disturbance{Client: &Noise{Threads: 1, RunQueueWaitNs: 400 * ms, StealNs: 60 * ms}}
	alone.OthersRan(Others{})
	if alone.Judge(time.Second); alone.Share() != 0.06 || len(alone.Reasons) != 1 {
		t.Errorf("nobody else ran: %v, %q", alone.Share(), alone.Reasons)
	}
	lossy := Disturbance{Client: &Noise{Threads: 1, Sockets: 1, Segments: 100, Retransmits: 9}}
	if lossy.Judge(time.Second); lossy.Verdict != VerdictDisturbed {
		t.Errorf("lost segments: %+v", lossy)
	}
	if lossy.LossMeant(); lossy.Verdict != VerdictQuiet || len(lossy.Reasons) > 0 {
		t.Errorf("lost segments on a path that loses: %+v", lossy)
	}
	lossy.Client.RunQueueWaitNs = 100 * ms
	lossy.Judge(time.Second)
	if lossy.LossMeant(); lossy.Verdict != VerdictDisturbed || len(lossy.Reasons) != 1 {
		t.Errorf("preempted on a path that loses: %+v", lossy)
	}
	d := Disturbance{Client: &Noise{Threads: 1, RunQueueWaitNs: 100 * ms}}
	d.Contradict("a probe is faster beside bulk")
	if d.Judge(time.Second); d.Verdict != VerdictImpossible || len(d.Reasons) != 2 ||
		d.Reasons[0] != "a probe is faster beside bulk" {
		t.Errorf("%+v", d)
	}
}

func TestADisturbanceInALine(t *testing.T) {
	for want, d := range map[string]Disturbance{
		"quiet":                               {Verdict: VerdictQuiet},
		"noise: a; b":                         {Verdict: VerdictDisturbed, Reasons: []string{"a", "b"}},
		"quiet (taken again 1 times)":         {Verdict: VerdictQuiet, Discarded: 1},
		"impossible: c (taken again 2 times)": {Verdict: VerdictImpossible, Reasons: []string{"c"}, Discarded: 2},
	} {
		if got := d.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
