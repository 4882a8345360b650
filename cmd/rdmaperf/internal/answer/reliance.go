package answer

import (
	"fmt"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

func (m *matrix) reliance(d *reports.Document, all []*comparison, level float64) []string {
	return view.Only([]string{m.method(d, all, level), noise(d, all), simulatedParts(d), verified(d)},
		func(line string) bool { return line != "" })
}

func (m *matrix) method(d *reports.Document, all []*comparison, level float64) string {
	least, most := 0, 0
	for _, l := range m.rows {
		for _, c := range m.columns {
			if n := len(l.cells[c]); n > 0 {
				most = max(most, n)
				if least == 0 || n < least {
					least = n
				}
			}
		}
	}
	count := rounds(most)
	if least != most {
		count = fmt.Sprintf("%d to %s", least, rounds(most))
	}
	s := fmt.Sprintf("%s of %s a point", view.Capital(count), view.NsLabel(
		reports.MedianOf(d.Results, func(r reports.Result) float64 { return float64(r.DurationNs) })))
	need := RoundsFor(level)
	switch {
	case most < need && len(all) > 0:
		return s + fmt.Sprintf(": no interval and no winner; %d or more give intervals for %s", need,
			view.Plural(int64(len(all)), "comparison"))
	case most < need:
		return s + fmt.Sprintf(": no interval; %d or more give intervals", need)
	}
	return "" // the matrix has a note
}

// noise says how often the machine was busy, and what that hides.
func noise(d *reports.Document, all []*comparison) string {
	var parts []string
	busy, again, known := 0, 0, 0
	for _, r := range reports.Pointers(d.Results) {
		if r.Disturbance == nil || r.Neighbours > 0 {
			continue
		}
		known++
		switch {
		case impossible(r): // a warning says so
		case r.Disturbance.Taken > leastContention && !r.Disturbance.Quiet():
			busy++
		case taken(r)-r.Disturbance.Taken > leastContention:
			again++
		}
	}
	of := view.Plural(int64(known), "measurement")
	if busy > 0 {
		parts = append(parts, fmt.Sprintf("CPU contention in %d of %s", busy, of))
	}
	if again > 0 {
		parts = append(parts, fmt.Sprintf("TCP sent many segments again in %d of %s", again, of))
	}
	hidden := view.Only(view.Each(all, func(x *comparison) float64 { return x.noise }), view.Finite)
	const worth = 1.05
	if least := reports.Median(hidden); len(parts) > 0 && least > worth {
		parts[len(parts)-1] += fmt.Sprintf(": differences below about %s are not shown here", times(least)[0])
	}
	return view.Capital(strings.Join(parts, "; "))
}

func simulatedParts(d *reports.Document) string {
	s := view.Join(", ", view.Unique(reports.Pointers(d.Results), func(r *reports.Result) string {
		if what := simulated(r); what != "" {
			return view.Visible(reports.TransportOf(r)) + " is " + what
		}
		return ""
	})...)
	return s + view.When(s != "", ": no figures of a network")
}

func verified(d *reports.Document) string {
	var sum reports.Verification
	wrong := 0
	for _, r := range d.Results {
		sum.Add(r.Verification)
		if !r.Verified && r.Verification != nil && r.Verification.Mode != reports.VerifyNone {
			wrong++
		}
	}
	switch {
	case wrong > 0:
		return fmt.Sprintf("Verification did not succeed in %s", view.Plural(int64(wrong), "measurement"))
	case sum.Messages == 0:
		return ""
	case sum.Numbers+sum.Whole == 0:
		return "Nothing was verified: --verify none"
	}
	return fmt.Sprintf("Verified %d of %s byte by byte, and the numbers of %d", sum.Whole,
		view.Plural(sum.Messages, "message"), sum.Numbers)
}
