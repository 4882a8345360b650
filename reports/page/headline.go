package page

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// headline says in one sentence what was measured.
func headline(set *reports.Set, cases []CaseResult) string {
	if len(set.Samples) == 0 {
		return conformanceHeadline(cases)
	}
	var names []string
	for _, s := range set.Samples {
		name := view.Visible(reports.LoadOf(s.Result).Called())
		if len(names) > 0 && !strings.ContainsFunc(name[min(1, len(name)):], unicode.IsUpper) { // no abbreviation
			name = strings.ToLower(name[:1]) + name[1:]
		}
		if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) }) {
			names = append(names, name)
		}
	}
	const named = 6
	if n := len(names); n > named {
		names = append(names[:named-1], fmt.Sprintf("%d more workloads", n-named+1))
	}
	what := names[0]
	if last := len(names) - 1; last > 0 {
		what = strings.Join(names[:last], ", ") + " and " + names[last]
	}
	switch {
	case len(set.Order) == 1:
		return what + " of " + set.Short[0]
	case !set.Shared():
		return fmt.Sprintf("%s of %d stacks, none of them under the conditions of another", what, len(set.Order))
	}
	return fmt.Sprintf("%s of %d stacks, side by side", what, len(set.Order))
}
