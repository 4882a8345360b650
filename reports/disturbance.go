package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Values of Disturbance.Verdict.
const (
	VerdictQuiet      = "quiet"      // nothing that would bend the figures was seen
	VerdictDisturbed  = "disturbed"  // the machine took time from the threads that measure
	VerdictImpossible = "impossible" // the figures contradict themselves, whatever the reason
)

// Disturbance is what is known of the machine in the window of one point.
type Disturbance struct {
	Verdict string   `json:"verdict"`
	Reasons []string `json:"reasons,omitempty"` // each with its number and the limit
	Client  *Noise   `json:"client,omitempty"`  // of the client's threads and machine
	Server  *Noise   `json:"server,omitempty"`

	// Taken is the largest part of the window for which a side's threads waited for a CPU, or its hypervisor had one.
	Taken float64 `json:"taken,omitempty"`

	// Discarded is how many measurements of this point were disturbed and taken again.
	Discarded int `json:"discarded,omitempty"`

	closedWindows bool
	others        *Others
}

// ClosedWindows has Judge look at the time for which a receive window blocked sending, for round trips that fit any
// window.
func (d *Disturbance) ClosedWindows() { d.closedWindows = true }

// Others is how long other programs had CPUs: what was seen, for the verdict, and the most that it can have been.
type Others struct{ Seen, Most time.Duration }

// OthersRan bounds how long threads can have waited for a CPU that another program had. The rest of their wait was for
// threads of the run itself, as on one CPU, under a quota or beside its own helpers, and belongs to what is measured.
func (d *Disturbance) OthersRan(o Others) { d.others = &o }

// Quiet tells that nothing speaks against the figures.
func (d *Disturbance) Quiet() bool { return d == nil || d.Verdict == VerdictQuiet }

// Shown is the verdict for people: noise is what the document calls disturbed.
func (d *Disturbance) Shown() string {
	if d.Verdict == VerdictDisturbed {
		return "noise"
	}
	return d.Verdict
}

// String is the verdict with its reasons.
func (d *Disturbance) String() string {
	return d.Shown() + view.When(len(d.Reasons) > 0, ": "+strings.Join(d.Reasons, "; ")) +
		view.When(d.Discarded > 0, fmt.Sprintf(" (taken again %d times)", d.Discarded))
}

// Contradict marks a result whose figures cannot be, where why is not empty.
func (r *Result) Contradict(why string) {
	if why == "" {
		return
	}
	if r.Disturbance == nil {
		r.Disturbance = &Disturbance{}
	}
	r.Disturbance.Contradict(why)
}

// DisturbanceLines are at most two about the points of a document that are not quiet.
func DisturbanceLines(d *Document) (lines []string) {
	watched := view.Only(Pointers(d.Results), func(r *Result) bool { return r.Disturbance != nil })
	for _, v := range []struct{ verdict, words string }{{VerdictImpossible, "contradictory figures"},
		{VerdictDisturbed, "noise"}} {
		of := view.Only(watched, func(r *Result) bool { return r.Disturbance.Verdict == v.verdict })
		if len(of) > 0 {
			lines = append(lines, fmt.Sprintf("! %s in %d of %s, such as %s: %s", v.words, len(of),
				view.Plural(int64(len(watched)), "measurement"), pointName(of[0]),
				strings.Join(of[0].Disturbance.Reasons, "; ")))
		}
	}
	return lines
}

// Noise is what the machine took from the threads of one side inside the window.
type Noise struct {
	Threads             int   `json:"threads"`
	InvoluntarySwitches int64 `json:"involuntary_switches"`
	RunQueueWaitNs      int64 `json:"run_queue_wait_ns"`    // ready to run and without a CPU, of all threads
	Dispatches          int64 `json:"dispatches,omitempty"` // how often a CPU was given: there were at most as many waits
	Migrations          int64 `json:"migrations"`
	MinorFaults         int64 `json:"minor_faults"`
	MajorFaults         int64 `json:"major_faults"`
	StealNs             int64 `json:"steal_ns"` // of the whole machine: what its hypervisor gave to others

	// Of the TCP connections of the process (TCP_INFO), where it has any.
	Sockets         int   `json:"sockets,omitempty"`
	Segments        int64 `json:"segments,omitempty"`          // sent
	Retransmits     int64 `json:"retransmits,omitempty"`       // of these, sent again
	WindowLimitedNs int64 `json:"window_limited_ns,omitempty"` // for which the peer's receive window blocked sending
}

// NoiseOf is the noise of one side.
type NoiseOf struct {
	Name string
	*Noise
}

// Sides are those of which something is known.
func (d *Disturbance) Sides() []NoiseOf {
	return slices.DeleteFunc([]NoiseOf{{"client", d.Client}, {"server", d.Server}},
		func(n NoiseOf) bool { return n.Noise == nil })
}

// Limits above which a window counts as disturbed, between what two polling ends lost on an idle machine of two CPUs
// (0.7 to 5.0 % of 54 windows, 0.09 % of segments) and beside a program that wanted a tenth of a CPU (7 to 12 %).
const (
	mostWait   = 0.05 // of the window, for a thread
	mostSteal  = 0.05 // of the window, for one CPU
	leastNoise = 2 * time.Millisecond
	leastSteal = 20 * time.Millisecond // two ticks of USER_HZ: one may have been nearly nothing

	// of the window, by the peer's receive window
	mostClosed = 0.01

	// A segment that is sent again comes a round trip late. One in a thousand is in no p99.
	mostRetransmits = 0.001 // of the segments
)

// Judge fills in the verdict and its reasons by what was counted. An impossible point stays one.
func (d *Disturbance) Judge(window time.Duration) {
	for _, side := range d.Sides() {
		if window <= 0 {
			continue
		}
		if n := side.Threads; n > 0 {
			seen := time.Duration(side.RunQueueWaitNs / int64(n))
			most := seen
			if d.others != nil {
				seen, most = min(seen, d.others.Seen), min(most, d.others.Most)
			}
			d.took(most, window)
			d.hold(side.Name+"'s threads waited for a CPU", seen, window, mostWait)
		}
		d.took(time.Duration(side.StealNs), window)
		if steal := time.Duration(side.StealNs); steal >= leastSteal {
			d.hold(side.Name+"'s hypervisor took CPUs away", steal, window, mostSteal)
		}
		if share := float64(side.Retransmits) / float64(max(side.Segments, 1)); side.Retransmits > 0 &&
			share > mostRetransmits {
			d.Reasons = append(d.Reasons, fmt.Sprintf("%s's "+sentAgain+" %s of %s again (limit %s %%)", side.Name,
				view.Integer(side.Retransmits), view.Plural(side.Segments, "segment"),
				view.Number(100*mostRetransmits, -1)))
		}
		if d.closedWindows {
			d.hold(side.Name+"'s TCP waited for its peer's window", time.Duration(side.WindowLimitedNs), window,
				mostClosed)
		}
		if side.MajorFaults > 0 {
			d.Reasons = append(d.Reasons, fmt.Sprintf("%s read %s from disk in the window", side.Name,
				view.Plural(side.MajorFaults, "page")))
		}
	}
	switch {
	case d.Verdict == VerdictImpossible:
	case len(d.Reasons) > 0:
		d.Verdict = VerdictDisturbed
	default:
		d.Verdict = VerdictQuiet
	}
}

// sentAgain tells the reason of segments that were sent again from others.
const sentAgain = "TCP sent"

// LossMeant strikes that segments were sent again, over a path that loses packets on purpose.
func (d *Disturbance) LossMeant() {
	if d == nil {
		return
	}
	d.Reasons = slices.DeleteFunc(d.Reasons, func(s string) bool { return strings.Contains(s, "'s "+sentAgain) })
	if d.Verdict == VerdictDisturbed && len(d.Reasons) == 0 {
		d.Verdict = VerdictQuiet
	}
}

func (d *Disturbance) took(t, window time.Duration) {
	d.Taken = max(d.Taken, float64(min(t, window))/float64(window))
}

// Share is Taken, also of a point of which nothing is known.
func (d *Disturbance) Share() float64 {
	if d == nil {
		return 0
	}
	return d.Taken
}

func (d *Disturbance) hold(what string, t, window time.Duration, most float64) {
	t = min(t, window) // counters are read around it, where threads wait, too
	share := float64(t) / float64(window)
	if t < leastNoise || share <= most {
		return
	}
	d.Reasons = append(d.Reasons, fmt.Sprintf("%s for %s %% of the window (limit %s %%)", what,
		view.Number(100*share, 1), view.Number(100*most, -1)))
}

// Contradict marks a point whose figures cannot be.
func (d *Disturbance) Contradict(reason string) {
	d.Verdict = VerdictImpossible
	d.Reasons = append([]string{reason}, d.Reasons...)
}

// Warnings are what changes how the figures of a document are read, the gravest first.
func Warnings(d *Document) (lines []string) {
	say := func(text string, is func(r *Result) bool) {
		if of := view.Only(Pointers(d.Results), is); len(of) > 0 {
			lines = append(lines, fmt.Sprintf(text, len(of), view.Plural(int64(len(d.Results)), "measurement"))+
				", such as "+pointName(of[0]))
		}
	}
	say("%d of %s contradict themselves", func(r *Result) bool {
		return r.Disturbance != nil && r.Disturbance.Verdict == VerdictImpossible
	})
	var failed int64
	for _, r := range d.Results {
		failed += r.Errors
	}
	if failed > 0 {
		lines = append(lines, view.Plural(failed, "failed operation"))
	}
	say("%d of %s did not carry the load offered", func(r *Result) bool {
		return r.OpenLoop != nil && r.OpenLoop.Saturated
	})
	say("%d of %s were not verified", func(r *Result) bool { return !r.Verified })
	say("%d of %s were interrupted", func(r *Result) bool { return r.Interrupted })
	return append(lines, WakeupLines(d)...)
}
