package page

import (
	"cmp"
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
			out = append(out, bad(view.Visible(fmt.Sprintf("Run ended early%s: %s: %s",
				view.When(name != "", " ("+name+")"), e.Operation, e.Message))))
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
	last := len(names) - 1
	what := view.Join(" and ", strings.Join(names[:last], ", "), names[last])
	switch {
	case len(set.Order) == 1:
		return what + " of " + set.Short[0]
	case !set.Shared():
		return fmt.Sprintf("%s of %d stacks, none of them under the conditions of another", what, len(set.Order))
	}
	return fmt.Sprintf("%s of %d stacks, side by side", what, len(set.Order))
}

// legible leaves as many lines in a chart as differ in colour and dash: medians before tails. Its data has all.
func legible(f *view.Figure) {
	c, ok := f.Chart.(*view.LineChart)
	if !ok || len(c.Series) <= view.Slots {
		return
	}
	all := len(c.Series)
	if medians := slices.DeleteFunc(slices.Clone(c.Series), func(s view.Series) bool { return s.Thin }); len(medians) > 0 {
		c.Series = medians
	}
	c.Series = c.Series[:min(len(c.Series), view.Slots)]
	f.Caption = strings.TrimPrefix(f.Caption+fmt.Sprintf(", %d of %d lines, the others in its data", len(c.Series), all),
		", ")
}

// shows is how many times the least of a chart's stacks the greatest has, at its median or the end of its sweep.
func shows(c view.Chart) string {
	var r span
	var unit func(float64) string
	label, at := "", ""
	switch c := c.(type) {
	case *view.LineChart:
		unit, label = c.YUnit, c.YLabel
		x := c.X.Hi
		if c.XText != nil { // percentiles
			x, at = 2, "At the median"
		} else if n := len(c.XTicks); n > 0 && c.XTicks[n-1].At == x {
			at = "At " + c.XTicks[n-1].Label
		} else {
			return ""
		}
		for _, s := range c.Series {
			i := slices.IndexFunc(s.Points, func(p view.Point) bool { return p.X == x && p.Tip != "" })
			if i >= 0 && !s.Thin {
				r.add(s.Points[i].Y, cmp.Or(s.Short, s.Name))
			}
		}
	case *view.BarChart:
		unit, label = c.Unit, c.XLabel
		block := ""
		for _, b := range c.Bars {
			if block = cmp.Or(b.Block, block); !b.Thin {
				r.add(b.Value, block)
			}
		}
	case *view.PairChart:
		unit, at = c.Unit, "Loaded, at the median"
		for _, b := range c.Bars {
			if b.Label == "p50" {
				r.add(b.Other, b.Block)
			}
		}
	}
	return r.words(unit, label, at)
}

type span struct {
	low, high         float64
	lowName, highName string
	values            int
}

func (r *span) add(v float64, name string) {
	if !view.Finite(v) || !(v > 0) {
		return
	}
	if r.values++; r.values == 1 || v < r.low {
		r.low, r.lowName = v, name
	}
	if r.values == 1 || v > r.high {
		r.high, r.highName = v, name
	}
}

// words has the unit that stands in brackets in the label of the axis, where its ticks have none.
func (r *span) words(unit func(float64) string, label, at string) string {
	if r.values == 0 {
		return ""
	}
	_, of, _ := strings.Cut(label, "[")
	text := func(v float64) string { return strings.TrimSpace(unit(v) + " " + strings.TrimSuffix(of, "]")) }
	if at != "" {
		at += ": "
	}
	switch {
	case r.values == 1:
		return at + text(r.high)
	case r.high < alike*r.low:
		return at + "all " + text(r.low) + " to " + text(r.high)
	}
	return at + r.lowName + " " + text(r.low) + ", " + r.highName + " " + view.Digits3(r.high/r.low) + "x of that"
}

// alike is how many times another a value is that reads as the same.
const alike = 1.05
