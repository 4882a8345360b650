package page

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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
	Marks    []verdictMark
}

// card is one comparison: the best figure, then every series against the first.
type card struct {
	Kicker, Figure, Winner, Note string
	Slot                         int
	Rows                         []cardRow
}

type cardRow struct {
	Name, Figure, Against string
	Slot                  int
	Best                  bool
}

// verdictMark is one thing that a reader must know before believing a figure.
type verdictMark struct{ Kind, Sign, Text string }

func good(text string) verdictMark { return verdictMark{"good", "✓", text} }

func warn(text string) verdictMark { return verdictMark{"warn", "!", text} }

func bad(text string) verdictMark { return verdictMark{"bad", "✕", text} }

// cardsShown bounds the summary; the charts below hold every comparison.
const cardsShown = 6

func newVerdict(set *reports.Set, docs []*reports.Document, cases []CaseResult) verdict {
	v := verdict{Marks: verdictMarks(set, docs, cases)}
	all := tally{wins: map[string]int{}}
	var each tallies
	add := func(k reports.Condition, own *reports.CardKind, figure func(*reports.Measured) float64, label func(float64) string, lowest bool, in []*reports.Measured) {
		sizes := reports.SizesOf(in)
		best := make([]string, len(sizes))
		cards := make([]card, len(sizes))
		for i, size := range sizes {
			arms := reports.Split(charts.OfSize(in, size))
			best[i], cards[i] = newCard(arms, figure, label, lowest)
			if len(arms) > 1 {
				all.add(best[i])
				each.of(cmp.Or(k.Kind.Called, view.Capital(k.Workload))).add(best[i])
			}
		}
		// Smallest messages decide latency, largest ones bandwidth.
		shown := 0
		if !lowest {
			shown = len(sizes) - 1
		}
		if len(v.Cards) >= cardsShown {
			return
		}
		c := cards[shown]
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
			c.Winner += own.Winner
		}
		c.Note = strings.TrimSpace(c.Note + " " + view.Capital(k.Conditions()) + ".")
		v.Cards = append(v.Cards, c)
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
	v.Headline = headline(set, all.wins, all.contests, cases)
	v.Lines = each.lines(set)
	return v
}

// otherSizes says whether the winner of the size on a card wins elsewhere too.
func otherSizes(best []string, shown, arms int) string {
	if len(best) < 2 || arms < 2 || best[shown] == "" {
		return ""
	}
	same := 0
	for _, b := range best {
		if b == best[shown] {
			same++
		}
	}
	if same == len(best) {
		if len(best) == 2 {
			return "Also best at the other size."
		}
		return fmt.Sprintf("Also best at all other %d sizes.", len(best)-1)
	}
	return fmt.Sprintf("Best at %d of %d sizes.", same, len(best))
}

// newCard compares the series with each other; the winner's name is returned.
func newCard(arms []*reports.BySeries, figure func(*reports.Measured) float64, label func(float64) string, lowest bool) (string, card) {
	values := make([]float64, len(arms))
	best := 0
	for i, b := range arms {
		values[i] = reports.MedianOf(b.Runs, figure)
		if v := values[i]; v > 0 && view.Finite(v) && (!(values[best] > 0) || !view.Finite(values[best]) || (lowest && v < values[best]) || (!lowest && v > values[best])) {
			best = i
		}
	}
	c := card{Figure: label(values[best]), Winner: arms[best].Short, Slot: arms[best].Slot % view.Slots}
	clear := !tooClose(arms, best, figure)
	if disturbed(arms) {
		clear, c.Winner = false, "no winner: the machine disturbed points"
	} else if !clear {
		c.Winner = "no clear winner: spreads overlap"
	} else if lowest {
		c.Winner += ", median"
	}
	for i, b := range arms {
		c.Rows = append(c.Rows, cardRow{Name: view.Visible(b.Series), Figure: label(values[i]), Against: against(values[i], values[0], i == 0), Slot: b.Slot % view.Slots, Best: clear && i == best})
	}
	if !clear {
		return "", c
	}
	return arms[best].Series, c
}

// disturbed tells whether some point of a comparison proves nothing.
func disturbed(arms []*reports.BySeries) bool {
	return slices.ContainsFunc(arms, func(b *reports.BySeries) bool {
		return slices.ContainsFunc(b.Runs, func(s *reports.Measured) bool { return !s.Disturbance.Quiet() })
	})
}

// tooClose tells whether the repeats of another series reach into those of the best.
// What was measured once has no spread, and is close to what holds its one value.
func tooClose(arms []*reports.BySeries, best int, figure func(*reports.Measured) float64) bool {
	span := func(b *reports.BySeries) (lo, hi float64) {
		lo, hi = math.Inf(1), math.Inf(-1)
		for _, r := range b.Runs {
			lo, hi = min(lo, figure(r)), max(hi, figure(r))
		}
		return lo, hi
	}
	lo, hi := span(arms[best])
	for i, b := range arms {
		if l, h := span(b); i != best && l <= hi && h >= lo {
			return true
		}
	}
	return false
}

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

// Lines is the verdict on one document in at most five lines, one a workload that
// several stacks ran under the same conditions; nothing when there is none. They say
// the same as the page does.
func Lines(d *reports.Document) []string {
	docs := []*reports.Document{d}
	return newVerdict(reports.NewSet(docs, nil), docs, nil).Lines
}

// against says how far v is from the first series.
func against(v, base float64, first bool) string {
	if first {
		return "reference"
	}
	if !(base > 0) || !view.Finite(v) || v <= 0 {
		return "-"
	}
	switch r := v / base; {
	case math.Abs(r-1) < 0.005:
		return "equal"
	case r >= 2:
		return "×" + view.Digits3(r)
	case r <= 0.5:
		return "÷" + view.Digits3(1/r)
	default:
		return fmt.Sprintf("%+.0f %%", 100*(r-1))
	}
}

// cardsOf are the kinds of cards beside those of latency and throughput, in order.
func cardsOf(set *reports.Set) []*reports.CardKind {
	var all []*reports.CardKind
	for _, s := range set.Samples {
		if c := s.AnyKind().Card; c != nil && !slices.Contains(all, c) {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b *reports.CardKind) int { return cmp.Compare(a.Rank, b.Rank) })
	return all
}

// headline is the one sentence that a hurried reader takes home. It names two stacks
// at most, by their short names, so that it stays about two lines of a wide page.
func headline(set *reports.Set, wins map[string]int, contests int, cases []CaseResult) string {
	if len(set.Samples) == 0 {
		return conformanceHeadline(cases)
	}
	if len(set.Order) == 1 {
		if arms := set.Arms(); len(arms) > 1 {
			return fmt.Sprintf("One stack was measured, in %d arms (%s): %s.", len(arms), strings.Join(arms, ", "), set.Short[0])
		}
		return fmt.Sprintf("One stack was measured: %s.", set.Short[0])
	}
	if contests == 0 {
		if set.Shared() {
			return fmt.Sprintf("%d stacks were measured under the same conditions; their figures have no best, and stand side by side below.", len(set.Order))
		}
		return "No two stacks were measured under the same conditions, so there is nothing to compare."
	}
	return fastest(set, wins, contests)
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

func verdictMarks(set *reports.Set, docs []*reports.Document, cases []CaseResult) []verdictMark {
	var out []verdictMark
	for i, d := range docs {
		if e := d.Error; e != nil {
			name := set.DocName(i)
			if name != "" {
				name = " (" + name + ")"
			}
			out = append(out, bad(view.Visible(fmt.Sprintf("Run ended early%s: %s: %s", name, e.Operation, e.Message))))
		}
	}
	var operations, failed, collections, clamped int64
	unverified, few, mem := 0, 0, false
	lowest := len(reports.PercentileTable)
	for _, s := range set.Samples {
		operations += s.Operations
		failed += s.Errors
		if !s.Verified {
			unverified++
		}
		mem = mem || s.Label == reports.LabelMem
		if s.GC != nil {
			collections += s.GC.ClientCollections + s.GC.ServerCollections
		}
		marked := false
		for _, l := range s.Latencies() {
			clamped += l.Clamped
			for i, p := range l.Percentiles() {
				if p.TooFew && l.Count > 0 {
					marked = true
					lowest = min(lowest, i)
				}
			}
		}
		if marked {
			few++
		}
	}
	n := len(set.Samples)
	for _, d := range docs {
		for _, l := range reports.WakeupLines(d) {
			out = append(out, warn(view.Visible(l)))
		}
		for _, l := range reports.DisturbanceLines(d) {
			out = append(out, warn(view.Visible(strings.TrimPrefix(l, "! "))))
		}
	}
	if n > 0 {
		if failed > 0 {
			out = append(out, bad(fmt.Sprintf("%s among %s.", view.Plural(failed, "failed operation"), view.Thousands(view.Integer(operations)))))
		} else {
			out = append(out, good(fmt.Sprintf("No errors in %s operations.", view.Thousands(view.Integer(operations)))))
		}
		switch {
		case unverified == 0:
			out = append(out, good(comparedText(set)))
		case unverified == n:
			out = append(out, warn("Data was not verified."))
		default:
			out = append(out, warn(fmt.Sprintf("Data was not verified in %d of %d results.", unverified, n)))
		}
	}
	if few > 0 {
		out = append(out, warn(fmt.Sprintf("In %d of %d results some percentiles, from p%s on, rest on too few samples: marked *.", few, n, view.TrimZeros(fmt.Sprintf("%.3f", reports.PercentileTable[lowest].Percent)))))
	}
	if mem {
		out = append(out, warn("mem is the in-process reference device, not a network."))
	}
	if collections > 0 {
		out = append(out, warn(fmt.Sprintf("%s inside measured windows.", view.Plural(collections, "garbage collection"))))
	}
	if clamped > 0 {
		out = append(out, warn(fmt.Sprintf("%s outside 0..60 s, counted at the limit in percentiles.", view.Plural(clamped, "sample"))))
	}
	for _, d := range docs {
		if d.Environment.Hypervisor {
			out = append(out, warn("Measured in a virtual machine: expect noise in the tail."))
			break
		}
	}
	return append(out, conformanceMarks(cases)...)
}

// comparedText says how the data of verified results was compared. A server compares a
// request before it answers.
func comparedText(set *reports.Set) string {
	if slices.ContainsFunc(set.Samples, func(s *reports.Measured) bool { return s.Parameters["compared"] != nil }) {
		return "Data was compared, of long tensors a part in turn."
	}
	for _, s := range set.Samples {
		if how := s.AnyKind().Compared; how != "" {
			return how
		}
	}
	var sum reports.Verification
	for _, s := range set.Samples {
		if v := s.Verification; v != nil {
			sum.Messages, sum.Numbers, sum.Whole, sum.Bytes = sum.Messages+v.Messages, sum.Numbers+v.Numbers, sum.Whole+v.Whole, sum.Bytes+v.Bytes
		}
	}
	switch {
	case sum.Messages == 0:
		return "Data was compared; how much of it is not in the document."
	case sum.Whole >= sum.Messages:
		return "Every byte of every message was compared."
	}
	return "Data was compared: " + sum.String() + "."
}
