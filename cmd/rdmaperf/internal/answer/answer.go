// Package answer makes of a result document what it shows: a matrix of figures with a row for each stack, sentences
// with factors and intervals that rest on it, and what limits them. All functions are pure.
package answer

import (
	"cmp"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// mostConclusions is how many sentences a reader takes in.
const mostConclusions = 8

// Of is what a document shows; nil where it has no figure to compare stacks by. It does not look at d.Answer.
func Of(d *reports.Document) *reports.Answer { return of(d, false) }

// of compares, with variants, nothing but the variants of each stack.
func of(d *reports.Document, variants bool) *reports.Answer {
	m := gather(d)
	m.ofVariants = variants
	m.choose()
	m.rows = slices.DeleteFunc(m.rows, func(l *row) bool {
		return !slices.ContainsFunc(m.columns, func(c *column) bool { return len(l.cells[c]) > 0 })
	})
	if len(m.columns) == 0 {
		return nil
	}
	m.describe()
	m.settle()
	all := m.comparisons()
	figures := 0
	for _, l := range m.rows {
		for _, c := range m.columns {
			if len(l.cells[c]) > 0 {
				figures++
			}
		}
	}
	// Comparisons hold together, and so do the figures by themselves.
	level, ofFigures := Level(len(all)), Level(figures)
	a := &reports.Answer{Columns: make([]reports.AnswerColumn, len(m.columns)), Comparisons: len(all)}
	for i, c := range m.columns {
		a.Columns[i] = c.shown
	}
	for _, l := range m.rows {
		line := reports.AnswerRow{Stack: l.stack, Variant: l.variant}
		for _, c := range m.columns {
			cell := l.cells[c].summary(ofFigures)
			if line.Cells = append(line.Cells, cell); cell != nil && cell.Within != nil {
				a.Confidence = ofFigures
			}
		}
		a.Rows = append(a.Rows, line)
	}
	for _, x := range all {
		x.judge(level)
	}
	differ := told(all)
	a.Undecided = len(all) - len(differ)
	a.Conclusions, a.Omitted = m.conclude(all, differ)
	if len(all) == 0 {
		level = ofFigures
	}
	a.Reliance = m.reliance(d, all, level)
	return a
}

// told are the comparisons that become sentences; without any interval, those on which all rounds agree.
func told(all []*comparison) []*comparison {
	is := (*comparison).decided
	if !slices.ContainsFunc(all, func(x *comparison) bool { return x.within != nil }) {
		is = (*comparison).plain
	}
	return view.Only(all, is)
}

// conclude makes sentences of the strongest comparisons of each topic in turn; omitted is how many are left.
func (m *matrix) conclude(all, candidates []*comparison) (out []reports.Conclusion, omitted int) {
	out = []reports.Conclusion{}          // as JSON it is a list
	pays := map[*comparison]*comparison{} // by what it is the price of
	for _, x := range candidates {
		if x.column.price == nil {
			continue
		}
		if p, ok := view.First(all, func(p *comparison) bool {
			return p.column == x.column.price && p.of == x.of && p.base == x.base
		}); ok {
			pays[x] = p
		}
	}
	for _, p := range pays { // they are said already
		candidates = slices.DeleteFunc(candidates, func(x *comparison) bool { return x == p })
	}
	topics := reports.GroupBy(candidates, func(x *comparison) (string, bool) { return x.topic(), true })
	order := []string{reports.TopicSmall, reports.TopicBulk, reports.TopicBoth}
	slices.SortStableFunc(topics, func(a, b *reports.GroupOf[string, *comparison]) int { // others are last
		return cmp.Compare(uint(slices.Index(order, a.Key)), uint(slices.Index(order, b.Key)))
	})
	take := make([]int, len(topics))
	for left, before := mostConclusions, 0; left != before; {
		before = left
		for i, t := range topics {
			if left > 0 && take[i] < len(t.Samples) {
				take[i]++
				left--
			}
		}
	}
	for i, t := range topics {
		slices.SortStableFunc(t.Samples, func(a, b *comparison) int { return cmp.Compare(b.strength(), a.strength()) })
		for _, x := range t.Samples[:take[i]] {
			c := reports.Conclusion{Topic: t.Key, Text: x.text(pays[x]), Stack: x.of.name(), Base: x.base.name(),
				AnswerRatio: x.ratio(m)}
			if p := pays[x]; p != nil {
				r := p.ratio(m)
				c.Price = &r
			}
			out = append(out, c)
		}
	}
	return out, len(candidates) - len(out)
}

// Turns is one document of runs that two sides took in turns, with what it shows: each stack of the one beside the same
// of the other. What a run measured in several rounds is one sample, because its rounds share the machine's pace.
func Turns(names [2]string, rounds [][2]*reports.Document) *reports.Document {
	d := *rounds[0][0]
	d.Results, d.Repeats = nil, nil
	for round, sides := range rounds {
		for i, side := range sides {
			for _, r := range side.Results {
				if variant := variantOf(&r); variant != "" {
					r.Stack, r.Transport = r.Stack+", "+variant, reports.TransportOf(&r)+", "+variant
				}
				r.Repeat, r.Dims = round+1, withVariant(r.Dims, names[i])
				d.Results = append(d.Results, r)
			}
		}
	}
	d.Answer = of(&d, true)
	return &d
}

func withVariant(dims []reports.Dim, variant string) []reports.Dim {
	others := view.Only(dims, func(d reports.Dim) bool { return d.Name != variantDim })
	return append([]reports.Dim{{Name: variantDim, Value: variant}}, others...)
}
