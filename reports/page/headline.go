package page

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// tally counts comparisons of stacks, and those that each series won.
type tally struct {
	workload string
	wins     map[string]int
	contests int
}

// add counts a comparison; best is empty when nobody clearly won.
func (t *tally) add(best string) {
	t.contests++
	if best != "" {
		t.wins[best]++
	}
}

// tallies are those of each workload, by first appearance.
type tallies []*tally

func (ts *tallies) of(workload string) *tally {
	for _, t := range *ts {
		if t.workload == workload {
			return t
		}
	}
	t := &tally{workload: workload, wins: map[string]int{}}
	*ts = append(*ts, t)
	return t
}

// linesShown bounds what a hurried reader reads at the end of a run.
const linesShown = 5

// lines are sentences, one a workload, and the last says how many there are no more
// lines for.
func (ts tallies) lines(set *reports.Set) []string {
	var lines []string
	for i, t := range ts {
		if i == linesShown-1 && len(ts) > linesShown {
			return append(lines, fmt.Sprintf("%d more workloads: their tables say.", len(ts)-i))
		}
		lines = append(lines, view.Visible(t.workload)+": "+fastest(set, t.wins, t.contests))
	}
	return lines
}

// headline is the one sentence that a hurried reader takes home. It names two stacks
// at most, by their short names, so that it stays about two lines of a wide page.
// Workloads that measure unlike things have no winner together: of several, it says what
// was compared, and the lines below who won.
func headline(set *reports.Set, each tallies, cases []CaseResult) string {
	if len(set.Samples) == 0 {
		return conformanceHeadline(cases)
	}
	if len(set.Order) == 1 {
		return fmt.Sprintf("One stack was measured: %s.", set.Short[0])
	}
	switch len(each) {
	case 0:
		if set.Shared() {
			return fmt.Sprintf("%d stacks were measured under the same conditions; their figures have no best, and "+
				"stand side by side below.", len(set.Order))
		}
		return "No two stacks were measured under the same conditions, so there is nothing to compare."
	case 1:
		return each[0].workload + ": " + fastest(set, each[0].wins, each[0].contests)
	}
	var names []string
	for _, t := range each {
		name := view.Visible(t.workload)
		if len(names) > 0 && !strings.ContainsFunc(name[1:], unicode.IsUpper) { // no abbreviation
			name = strings.ToLower(name[:1]) + name[1:]
		}
		names = append(names, name)
	}
	const named = 6
	if len(names) > named {
		names = append(names[:named-1], fmt.Sprintf("%d more workloads", len(each)-named+1))
	}
	last := len(names) - 1
	return fmt.Sprintf("%s and %s of %d stacks, side by side", strings.Join(names[:last], ", "), names[last],
		len(set.Order))
}

// unclear is why a comparison has no winner.
func unclear(set *reports.Set) string {
	if slices.ContainsFunc(set.Samples, func(s *reports.Measured) bool { return !s.Disturbance.Quiet() }) {
		return "spreads overlap or points were disturbed"
	}
	return "spreads overlap"
}

// fastest says who won how many of the comparisons.
func fastest(set *reports.Set, wins map[string]int, contests int) string {
	var winners []int
	clear := 0
	for i, name := range set.Order {
		if wins[name] > 0 {
			winners = append(winners, i)
			clear += wins[name]
		}
	}
	won := func(i int) int { return wins[set.Order[i]] }
	slices.SortStableFunc(winners, func(a, b int) int { return won(b) - won(a) })
	if len(winners) == 0 {
		if contests == 1 {
			return "No stack is clearly fastest: " + unclear(set) + " in the one comparison made."
		}
		return fmt.Sprintf("No stack is clearly fastest: %s in all %d comparisons.", unclear(set), contests)
	}
	best := winners[0]
	switch {
	case contests == 1:
		return fmt.Sprintf("%s is fastest in the one comparison made.", set.Short[best])
	case won(best) == contests:
		return fmt.Sprintf("%s is fastest in all %d comparisons.", set.Short[best], contests)
	}
	text := fmt.Sprintf("%s is fastest in %d of %d comparisons", set.Short[best], won(best), contests)
	if len(winners) > 1 {
		second := winners[1]
		text += fmt.Sprintf("; %s in %d", set.Short[second], won(second))
		if others := len(winners) - 2; others > 0 {
			text += fmt.Sprintf("; %s in %d", view.Plural(int64(others), "other"), clear-won(best)-won(second))
		}
	}
	if clear < contests {
		text += fmt.Sprintf("; %s in %d", unclear(set), contests-clear)
	}
	return text + "."
}
