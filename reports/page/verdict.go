package page

import (
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/charts"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// verdict is the top of the page, in plain words.
type verdict struct {
	Headline string
	Lines    []string // one a workload, when there are several
	Cards    []card
	More     int // comparisons that have no card
	Marks    []verdictMark
}

func newVerdict(set *reports.Set, docs []*reports.Document, cases []CaseResult) verdict {
	v := verdict{Marks: verdictMarks(set, docs, cases)}
	var each tallies
	var candidates []card
	add := func(k reports.Condition, f reports.Figure, in []*reports.Measured) {
		figure := func(s *reports.Measured) float64 { v, _ := s.Figure(f.Name); return v }
		label := func(v float64) string { return reports.QuantityLabel(f.Quantity, v) }
		sizes := reports.SizesOf(in)
		best, called := make([]string, len(sizes)), k.Called()
		cards := make([]card, len(sizes))
		for i, size := range sizes {
			stacks := reports.Split(charts.OfSize(in, size))
			best[i], cards[i] = newCard(stacks, figure, label, f.Better == reports.Less)
			if len(stacks) > 1 {
				each.of(called).add(best[i])
			}
		}
		// Smallest messages decide latency, largest ones bandwidth.
		shown := 0
		if f.Better == reports.More {
			shown = len(sizes) - 1
		}
		c := cards[shown]
		c.workload = called
		parts := []string{called, k.Op}
		if strings.ContainsRune(f.Name, '.') {
			parts = append(parts, reports.FigureLabel(f.Name))
		}
		if c.Kicker = strings.Join(append(parts, reports.SizeLabel(sizes[shown])), " · "); k.Rate > 0 {
			c.Kicker += " · " + view.RateLabel(k.Rate)
		}
		conditions := k.Conditions()
		if k.Extra != "" {
			conditions += ", " + k.Extra
		}
		c.Note = strings.TrimSpace(otherSizes(best, shown, len(c.Rows)) + " " + view.Capital(conditions) + ".")
		candidates = append(candidates, c)
	}
	type key struct {
		reports.Condition
		figure reports.Figure
	}
	for _, pass := range []struct {
		open bool
		reports.Better
	}{{false, reports.Less}, {false, reports.More}, {true, reports.Less}, {true, reports.More}} {
		for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (key, bool) {
			f, ok := mainFigure(s)
			return key{s.Condition(), f}, ok && f.Better == pass.Better && (s.Rate > 0) == pass.open
		}) {
			add(g.Key.Condition, g.Key.figure, g.Samples)
		}
	}
	v.Cards, v.More = pick(candidates)
	v.Headline = headline(set, each, cases)
	v.Lines = each.lines(set)
	return v
}

// mainFigure is what stacks are compared by, without its value; false where there is none, or where the path did not
// keep up so that the figure is a backlog.
func mainFigure(s *reports.Measured) (reports.Figure, bool) {
	for _, f := range s.ShownFigures() {
		prefix, _, own := strings.Cut(f.Name, ".")
		if saturated, _ := s.Figure(prefix + ".saturated"); f.Better == reports.Neither || own && saturated > 0 {
			continue
		}
		f.Value = 0
		return f, true
	}
	return reports.Figure{}, false
}
