package answer

import (
	"math"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
)

// mostTaken is below 1 since something was done in a window that has a figure.
const mostTaken = 0.99

// taken is the largest part of a window that waits for a CPU, the hypervisor and segments sent again can have taken.
func taken(r *reports.Result) float64 {
	d := r.Disturbance
	if d == nil || r.Neighbours > 0 {
		return 0 // what neighbours take is what was asked for
	}
	t := d.Taken
	for _, n := range []*reports.Noise{d.Client, d.Server} {
		if n != nil && n.Segments > 0 && r.Impairment == "" {
			t = max(t, d.Taken+float64(n.Retransmits)/float64(n.Segments))
		}
	}
	return min(max(t, 0), mostTaken)
}

// bounds are the least and greatest value that a figure can have had on a machine that takes nothing.
func bounds(r *reports.Result, f reports.Figure) (low, high float64) {
	t, v := taken(r), f.Value
	if l, name := r.LatencyOf(f.Name); l != nil {
		return latencyBounds(l, name, v, t, hit(r, l, name, v, t), delayed(r, l))
	}
	if f.Better == reports.More && (f.Quantity == reports.QuantityRate || f.Quantity == reports.QuantityBytes) {
		// In the time that was taken as much could have been done as in the rest.
		return v, v / (1 - t)
	}
	// Of any other figure only its proportion to the window is known, in either direction.
	return v * (1 - t), v / (1 - t)
}

// latencyBounds are those of a figure of a distribution. Time that is taken only adds to a latency.
// The part all of the operations may have lost all of their time, and at most the part few of them lost any.
func latencyBounds(l *reports.Latency, name string, v, t, all, few float64) (low, high float64) {
	if high = v; l.IsBound(name) {
		high = math.Inf(1) // of operations that were not done in the end
	}
	if t == 0 {
		return v, high
	}
	// Every operation may have lost the same part of its time. It is also what a mean can be off by.
	low = v * (1 - t)
	ps := l.Percentiles()
	switch i := slices.IndexFunc(ps, func(p reports.Percentile) bool { return p.Name == name }); {
	case i >= 0:
		// Those that lost all of it lasted longest; without them percentile q is where q(1-all) is now.
		low = min(low, quantile(l, ps[i].Percent*(1-all)))
		if few < 1 {
			low = max(low, quantile(l, ps[i].Percent-100*few)) // even if those would be the shortest
		}
	case name == "max" || name == "stddev":
		low = 0 // one operation may be all of it
	}
	return low, high
}

// manyWaits in the time of an operation are so many that the operations lose nearly the same part of it.
const manyWaits = 4

// hit is the largest part of the operations that may have lost all of their time, where the part t of the window was
// taken. A median into which many waits go lost their part only, and what was sent again or stolen.
func hit(r *reports.Result, l *reports.Latency, name string, v, t float64) float64 {
	d := r.Disturbance
	if d == nil || name != "p50" || r.DurationNs <= 0 {
		return t
	}
	part := 0.
	for _, n := range []*reports.Noise{d.Client, d.Server} {
		switch {
		case n == nil || n.RunQueueWaitNs == 0:
			continue
		case n.Dispatches == 0 || v < manyWaits*float64(n.RunQueueWaitNs)/float64(n.Dispatches):
			return t
		}
		part = max(part, float64(n.StealNs)/float64(r.DurationNs)+
			float64(n.Retransmits)/float64(max(min(n.Segments, l.Count), 1)))
	}
	return min(part, t)
}

// delayed is the largest part of the operations that noise can have delayed: each wait for a CPU ends with a dispatch.
// Steal has no such count, but lasts much longer than an operation.
func delayed(r *reports.Result, l *reports.Latency) float64 {
	d := r.Disturbance
	if d == nil || r.Polling != reports.PollingBusy || r.Depth != 1 || d.Client == nil || d.Server == nil ||
		r.DurationNs <= 0 {
		return 1
	}
	part := 0.
	for _, n := range []*reports.Noise{d.Client, d.Server} {
		waits := n.Dispatches
		if waits == 0 {
			waits = n.InvoluntarySwitches // a document of before; a thread that spins begins each wait with one
		}
		part += float64(waits+n.Retransmits)/float64(max(l.Count, 1)) + float64(n.StealNs)/float64(r.DurationNs)
	}
	return min(part, 1)
}

// quantile is at most that percentile of a distribution: of the histogram, or else of the next tabulated one below.
func quantile(l *reports.Latency, percent float64) float64 {
	if h, err := l.Histogram(); err == nil && h.TotalCount() > 0 {
		return max(float64(reports.ValuesAt(h, []float64{percent})[0]), l.Min)
	}
	v := l.Min
	for _, p := range l.Percentiles() {
		if p.Percent <= percent {
			v = max(v, p.Ns)
		}
	}
	return v
}

// leastContention is what threads of the kernel and the runtime take of a window on an idle machine, at most.
const leastContention = 0.05

func impossible(r *reports.Result) bool {
	return r.Disturbance != nil && r.Disturbance.Verdict == reports.VerdictImpossible
}

func simulated(r *reports.Result) string {
	switch r.Label {
	case reports.LabelMem:
		return "in this process only"
	case reports.LabelModel:
		return "a simulated NIC"
	}
	return ""
}
