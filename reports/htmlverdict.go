package reports

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// verdict is the top of the page, in plain words.
type verdict struct {
	Headline string
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
func bad(text string) verdictMark  { return verdictMark{"bad", "✕", text} }

// cardsShown bounds the summary; the charts below hold every comparison.
const cardsShown = 6

func newVerdict(set *sampleSet, docs []*Document, cases []CaseResult) verdict {
	v := verdict{Marks: verdictMarks(set, docs, cases)}
	wins, contests := map[string]int{}, 0
	add := func(k condition, kind string, figure func(*sample) float64, label func(float64) string, lowest bool, in []*sample) {
		sizes := sizesOf(in)
		best := make([]string, len(sizes))
		cards := make([]card, len(sizes))
		for i, size := range sizes {
			best[i], cards[i] = newCard(split(ofSize(in, size)), figure, label, lowest)
			if len(cards[i].Rows) > 1 {
				contests++
				wins[best[i]]++
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
		c.Kicker = fmt.Sprintf("%s · %s · %s", capital(kind), k.op, sizeLabel(sizes[shown]))
		if k.rpc != (rpcLoad{}) { // the operation of all is the call
			c.Kicker = fmt.Sprintf("%s · %s", capital(k.what()), sizeLabel(sizes[shown]))
		}
		if k.rate > 0 {
			c.Kicker += " · " + rateLabel(k.rate)
		}
		c.Note = otherSizes(best, shown, len(c.Rows))
		if kind == "head-of-line" {
			c.Kicker = fmt.Sprintf("Head-of-line · %s probes · %s", sizeLabel(k.hol.probe), k.extra)
			c.Winner += " of loaded probes"
			c.Note = holNote(split(in))
		}
		if ps := in[0].ParamServer; ps != nil {
			c.Kicker = fmt.Sprintf("Iteration of %s · %s", visible(ps.Model), k.extra)
			c.Note = ""
		}
		c.Note = strings.TrimSpace(c.Note + " " + capital(k.conditions()) + ".")
		v.Cards = append(v.Cards, c)
	}
	for _, g := range groupBy(set.samples, func(s *sample) (condition, bool) { return s.condition(), s.HOL != nil }) {
		add(g.key, "head-of-line", func(s *sample) float64 { return s.HOL.ProbeLoaded.P50 }, nsLabel, true, g.samples)
	}
	for _, g := range groupBy(set.samples, func(s *sample) (condition, bool) {
		return s.condition(), s.ParamServer != nil && s.ParamServer.Iteration.Count > 0
	}) {
		add(g.key, "training", func(s *sample) float64 { return s.ParamServer.Iteration.P50 }, nsLabel, true, g.samples)
	}
	loop := func(open bool) {
		for _, g := range groupBy(set.samples, func(s *sample) (condition, bool) {
			return s.condition(), s.HOL == nil && s.Latency != nil && s.Latency.Count > 0 && (s.rate > 0) == open
		}) {
			add(g.key, g.key.workload, func(s *sample) float64 { return s.Latency.P50 }, nsLabel, true, g.samples)
		}
	}
	loop(false)
	for _, g := range groupBy(set.samples, func(s *sample) (condition, bool) {
		return s.condition(), s.HOL == nil && s.Latency == nil && s.Throughput != nil
	}) {
		add(g.key, g.key.workload, func(s *sample) float64 { return s.Throughput.BytesPerSecond }, bandwidthLabel, false, g.samples)
	}
	loop(true)
	v.Headline = headline(set, wins, contests, cases)
	return v
}

// otherSizes says whether the winner of the size on a card wins elsewhere too.
func otherSizes(best []string, shown, arms int) string {
	if len(best) < 2 || arms < 2 {
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
func newCard(arms []*bySeries, figure func(*sample) float64, label func(float64) string, lowest bool) (string, card) {
	values := make([]float64, len(arms))
	best := 0
	for i, b := range arms {
		values[i] = medianOf(b.runs, figure)
		if v := values[i]; v > 0 && finite(v) && (!(values[best] > 0) || !finite(values[best]) || (lowest && v < values[best]) || (!lowest && v > values[best])) {
			best = i
		}
	}
	c := card{Figure: label(values[best]), Winner: arms[best].short, Slot: arms[best].slot % slots}
	if lowest {
		c.Winner += ", median"
	}
	for i, b := range arms {
		c.Rows = append(c.Rows, cardRow{Name: visible(b.series), Figure: label(values[i]), Against: against(values[i], values[0], i == 0), Slot: b.slot % slots, Best: i == best})
	}
	return arms[best].series, c
}

// against says how far v is from the first series.
func against(v, base float64, first bool) string {
	if first {
		return "reference"
	}
	if !(base > 0) || !finite(v) || v <= 0 {
		return "-"
	}
	switch r := v / base; {
	case math.Abs(r-1) < 0.005:
		return "equal"
	case r >= 2:
		return "×" + digits3(r)
	case r <= 0.5:
		return "÷" + digits3(1/r)
	default:
		return fmt.Sprintf("%+.0f %%", 100*(r-1))
	}
}

// holNote says how much the probes suffer, per series.
func holNote(arms []*bySeries) string {
	var out []string
	for _, b := range arms {
		alone := medianOf(b.runs, func(s *sample) float64 { return s.HOL.ProbeAlone.P50 })
		loaded := medianOf(b.runs, func(s *sample) float64 { return s.HOL.ProbeLoaded.P50 })
		out = append(out, fmt.Sprintf("%s ×%s", b.short, digits3(loaded/alone)))
	}
	return "Against the probe alone: " + strings.Join(out, ", ") + "."
}

// headline is the one sentence that a hurried reader takes home. It names two stacks
// at most, by their short names, so that it stays about two lines of a wide page.
func headline(set *sampleSet, wins map[string]int, contests int, cases []CaseResult) string {
	if len(set.samples) == 0 {
		return conformanceHeadline(cases)
	}
	if len(set.order) == 1 {
		if arms := set.arms(); len(arms) > 1 {
			return fmt.Sprintf("One stack was measured, in %d arms (%s): %s.", len(arms), strings.Join(arms, ", "), set.short[0])
		}
		return fmt.Sprintf("One stack was measured: %s.", set.short[0])
	}
	if contests == 0 {
		if set.shared() {
			return fmt.Sprintf("%d stacks were measured under the same conditions; their figures have no best, and stand side by side below.", len(set.order))
		}
		return "No two stacks were measured under the same conditions, so there is nothing to compare."
	}
	var winners []int
	for i, name := range set.order {
		if wins[name] > 0 {
			winners = append(winners, i)
		}
	}
	won := func(i int) int { return wins[set.order[i]] }
	slices.SortStableFunc(winners, func(a, b int) int { return won(b) - won(a) })
	best := winners[0]
	switch {
	case contests == 1:
		return fmt.Sprintf("%s is fastest in the one comparison made.", set.short[best])
	case won(best) == contests:
		return fmt.Sprintf("%s is fastest in all %d comparisons.", set.short[best], contests)
	}
	text := fmt.Sprintf("%s is fastest in %d of %d comparisons", set.short[best], won(best), contests)
	second := winners[1] // some were not won by the best
	text += fmt.Sprintf("; %s in %d", set.short[second], won(second))
	if others := len(winners) - 2; others > 0 {
		text += fmt.Sprintf("; %s in %d", plural(int64(others), "other"), contests-won(best)-won(second))
	}
	return text + "."
}

func verdictMarks(set *sampleSet, docs []*Document, cases []CaseResult) []verdictMark {
	var out []verdictMark
	for i, d := range docs {
		if e := d.Error; e != nil {
			name := set.docName(i)
			if name != "" {
				name = " (" + name + ")"
			}
			out = append(out, bad(visible(fmt.Sprintf("Run ended early%s: %s: %s", name, e.Operation, e.Message))))
		}
	}
	var operations, failed, collections, clamped int64
	unverified, few, mem := 0, 0, false
	lowest := len(percentileTable)
	for _, s := range set.samples {
		operations += s.Operations
		failed += s.Errors
		if !s.Verified {
			unverified++
		}
		mem = mem || s.Label == LabelMem
		if s.GC != nil {
			collections += s.GC.ClientCollections + s.GC.ServerCollections
		}
		marked := false
		for _, l := range s.latencies() {
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
	n := len(set.samples)
	if n > 0 {
		if failed > 0 {
			out = append(out, bad(fmt.Sprintf("%s among %s.", plural(failed, "failed operation"), thousands(integer(operations)))))
		} else {
			out = append(out, good(fmt.Sprintf("No errors in %s operations.", thousands(integer(operations)))))
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
		out = append(out, warn(fmt.Sprintf("In %d of %d results some percentiles, from p%s on, rest on too few samples: marked *.", few, n, trimZeros(fmt.Sprintf("%.3f", percentileTable[lowest].percent)))))
	}
	if mem {
		out = append(out, warn("mem is the in-process reference device, not a network."))
	}
	if collections > 0 {
		out = append(out, warn(fmt.Sprintf("%s inside measured windows.", plural(collections, "garbage collection"))))
	}
	if clamped > 0 {
		out = append(out, warn(fmt.Sprintf("%s outside 0..60 s, counted at the limit in percentiles.", plural(clamped, "sample"))))
	}
	for _, d := range docs {
		if d.Environment.Hypervisor {
			out = append(out, warn("Measured in a virtual machine: expect noise in the tail."))
			break
		}
	}
	return append(out, conformanceMarks(cases)...)
}

// latencies is every distribution of one result that its author recorded.
func (s *sample) latencies() []*Latency {
	var out []*Latency
	if s.Latency != nil {
		out = append(out, s.Latency)
	}
	if s.HOL != nil {
		out = append(out, &s.HOL.ProbeAlone, &s.HOL.ProbeLoaded)
	}
	return out
}

// comparedText says how the data of verified results was compared. A server compares a
// request before it answers.
func comparedText(set *sampleSet) string {
	switch {
	case slices.ContainsFunc(set.samples, func(s *sample) bool { return s.Parameters["compared"] != nil }):
		return "Data was compared, of long tensors a part in turn."
	case slices.ContainsFunc(set.samples, func(s *sample) bool { return s.RPC != nil }):
		return "Every byte was compared."
	}
	return "Every byte was compared, outside the measured window."
}
