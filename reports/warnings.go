package reports

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Warnings are what changes how the figures of a document are read, the gravest first: figures that cannot be, failed
// operations, load that was not carried, data that was not verified, and stacks that sleep.
func Warnings(d *Document) (lines []string) {
	type count struct {
		n     int64
		first *Result
	}
	var impossible, saturated, unverified, interrupted count
	var failed int64
	add := func(c *count, r *Result, is bool) {
		if !is {
			return
		}
		if c.n++; c.first == nil {
			c.first = r
		}
	}
	for i := range d.Results {
		r := &d.Results[i]
		failed += r.Errors
		add(&impossible, r, r.Disturbance != nil && r.Disturbance.Verdict == VerdictImpossible)
		add(&saturated, r, r.OpenLoop != nil && r.OpenLoop.saturation() > 0)
		add(&unverified, r, !r.Verified)
		add(&interrupted, r, r.Interrupted)
	}
	say := func(c *count, text string) {
		if c.n > 0 {
			lines = append(lines, fmt.Sprintf(text, c.n, view.Plural(int64(len(d.Results)), "measurement"))+
				", such as "+pointName(c.first))
		}
	}
	say(&impossible, "%d of %s contradict themselves")
	if failed > 0 {
		lines = append(lines, view.Plural(failed, "failed operation"))
	}
	say(&saturated, "%d of %s did not carry the load offered")
	say(&unverified, "%d of %s were not verified")
	say(&interrupted, "%d of %s were interrupted")
	return append(lines, WakeupLines(d)...)
}
