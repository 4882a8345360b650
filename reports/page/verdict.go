package page

import (
	"cmp"
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
	add := func(k reports.Condition, own *reports.CardKind, figure func(*reports.Measured) float64, label func(float64) string, lowest bool, in []*reports.Measured) {
		sizes := reports.SizesOf(in)
		best, called := make([]string, len(sizes)), cmp.Or(k.Kind.Called, view.Capital(k.Workload))
		cards := make([]card, len(sizes))
		for i, size := range sizes {
			arms := reports.Split(charts.OfSize(in, size))
			best[i], cards[i] = newCard(arms, figure, label, lowest)
			if len(arms) > 1 {
				each.of(called).add(best[i])
			}
		}
		// Smallest messages decide latency, largest ones bandwidth.
		shown := 0
		if !lowest {
			shown = len(sizes) - 1
		}
		c := cards[shown]
		c.workload = called
		kicker := view.Capital(k.Workload) + " · " + k.Op
		if f := k.Kind.LatencyCard; f != nil {
			kicker = f(k)
		}
		c.Kicker = kicker + " · " + reports.SizeLabel(sizes[shown])
		if k.Rate > 0 {
			c.Kicker += " · " + view.RateLabel(k.Rate)
		}
		c.Note = otherSizes(best, shown, len(c.Rows))
		if own != nil {
			c.Kicker, c.Note = own.Kicker(k), own.Note(in)
			if !c.Unclear {
				c.Winner += own.Winner
			}
		}
		c.Note = strings.TrimSpace(c.Note + " " + view.Capital(k.Conditions()) + ".")
		candidates = append(candidates, c)
	}
	for _, own := range cardsOf(set) {
		for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
			return s.Condition(), s.AnyKind().Card == own && own.Has(s)
		}) {
			add(g.Key, own, own.Figure, view.NsLabel, true, g.Samples)
		}
	}
	loop := func(open bool) {
		for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
			return s.Condition(), !s.AnyKind().OwnCharts && s.Latency != nil && s.Latency.Count > 0 && (s.Rate > 0) == open
		}) {
			add(g.Key, nil, func(s *reports.Measured) float64 { return s.Latency.P50 }, view.NsLabel, true, g.Samples)
		}
	}
	loop(false)
	for _, g := range reports.GroupBy(set.Samples, func(s *reports.Measured) (reports.Condition, bool) {
		return s.Condition(), !s.AnyKind().OwnCharts && s.Latency == nil && s.Throughput != nil
	}) {
		add(g.Key, nil, func(s *reports.Measured) float64 { return s.Throughput.BytesPerSecond }, view.BandwidthLabel, false, g.Samples)
	}
	loop(true)
	v.Cards, v.More = pick(candidates)
	v.Headline = headline(set, each, cases)
	v.Lines = each.lines(set)
	return v
}
