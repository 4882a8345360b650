package page

import (
	"fmt"
	"math"
	"slices"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// card is one comparison: the best figure, then every series against the first.
type card struct {
	Kicker, Figure, Winner, Note string
	Slot                         int
	Unclear                      bool // nobody won
	Rows                         []cardRow

	workload string // in a sentence
}

type cardRow struct {
	Name, Figure, Against string
	Slot                  int
	Best                  bool
}

// cardsShown bounds the summary where there are fewer workloads; the charts below hold
// every comparison.
const cardsShown = 6

// cardsMost bounds it where each workload has a card.
const cardsMost = 12

// pick takes one card a workload before any second one, and counts the others.
func pick(all []card) (shown []card, more int) {
	rank := map[string]int{}
	ranks := make([]int, len(all))
	for i, c := range all {
		ranks[i] = rank[c.workload]
		rank[c.workload]++
	}
	room := min(max(cardsShown, len(rank)), cardsMost)
	for r := 0; len(shown) < min(room, len(all)); r++ {
		for i, c := range all {
			if ranks[i] == r && len(shown) < room {
				shown = append(shown, c)
			}
		}
	}
	return shown, len(all) - len(shown)
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
func newCard(arms []*reports.BySeries, figure func(*reports.Measured) float64, label func(float64) string,
	lowest bool) (string, card) {
	values := make([]float64, len(arms))
	best := 0
	for i, b := range arms {
		values[i] = reports.MedianOf(b.Runs, figure)
		if v := values[i]; v > 0 && view.Finite(v) && (!(values[best] > 0) || !view.Finite(values[best]) ||
			(lowest && v < values[best]) || (!lowest && v > values[best])) {
			best = i
		}
	}
	c := card{Figure: label(values[best]), Winner: arms[best].Short, Slot: arms[best].Slot % view.Slots}
	clear := !tooClose(arms, best, figure)
	if disturbed(arms) {
		if clear = false; len(arms) == 1 {
			c.Winner += ": the machine disturbed its points" // nobody was to win
		} else {
			c.Winner = "no winner: the machine disturbed points"
		}
	} else if !clear {
		c.Winner = "no clear winner: spreads overlap"
	} else if lowest {
		c.Winner += ", median"
	}
	for i, b := range arms {
		c.Rows = append(c.Rows, cardRow{Name: view.Visible(b.Short), Figure: label(values[i]),
			Against: against(values[i], values[0], i == 0), Slot: b.Slot % view.Slots, Best: clear && i == best})
	}
	if c.Unclear = !clear; !clear {
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

// tooClose tells whether the repeats of another series reach into those of the best, each
// wider by what the machine took from it. What was measured once has no other spread.
func tooClose(arms []*reports.BySeries, best int, figure func(*reports.Measured) float64) bool {
	span := func(b *reports.BySeries) (lo, hi float64) {
		lo, hi = math.Inf(1), math.Inf(-1)
		for _, r := range b.Runs {
			v, taken := figure(r), r.Disturbance.Share()
			lo, hi = min(lo, v*(1-taken)), max(hi, v*(1+taken))
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
