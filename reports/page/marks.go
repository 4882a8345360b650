package page

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// mark is one thing that a reader must know before believing a figure.
type mark struct{ Kind, Sign, Text string }

func good(text string) mark { return mark{"good", "✓", text} }

func warn(text string) mark { return mark{"warn", "!", text} }

func bad(text string) mark { return mark{"bad", "✕", text} }

func newMarks(set *reports.Set, docs []*reports.Document, cases []CaseResult) (out []mark) {
	for i, d := range docs {
		if e := d.Error; e != nil {
			name := set.DocName(i)
			if name != "" {
				name = " (" + name + ")"
			}
			out = append(out, bad(view.Visible(fmt.Sprintf("Run ended early%s: %s: %s", name, e.Operation, e.Message))))
		}
		for _, l := range reports.Warnings(d) {
			if m := warn(view.Visible(sentence(l))); !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	var operations, failed int64
	verified := false
	for _, s := range set.Samples {
		operations += s.Operations
		failed += s.Errors
		verified = verified || s.Verified
	}
	if len(set.Samples) > 0 && failed == 0 {
		out = append(out, good(fmt.Sprintf("No errors in %s operations.", view.Thousands(view.Integer(operations)))))
	}
	if verified {
		out = append(out, good(comparedText(set)))
	}
	return append(out, conformanceMarks(cases)...)
}

func comparedText(set *reports.Set) string {
	if slices.ContainsFunc(set.Samples, func(s *reports.Measured) bool { return s.Parameters["compared"] != nil }) {
		return "Data was compared, of long tensors a part in turn."
	}
	var sum reports.Verification
	for _, s := range set.Samples {
		sum.Add(s.Verification)
	}
	switch {
	case sum.Messages == 0:
		return "Data was compared; how much of it is not in the document."
	case sum.Whole >= sum.Messages:
		return "Every byte of every message was compared."
	}
	return "Data was compared: " + sum.String() + "."
}

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
