package reports

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// AnswerText is a cell as people read it: a median in three digits, and its interval.
type AnswerText struct{ Value, Within string }

// String has the interval in brackets.
func (t AnswerText) String() string { return t.Value + view.When(t.Within != "", " ("+t.Within+")") }

// unitStep is a unit and how many of a document's unit it has.
type unitStep struct {
	name string
	of   float64
}

func unitSteps(q Quantity, u view.Units) []unitStep {
	switch q {
	case QuantityTime:
		return []unitStep{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}
	case QuantityRate:
		return []unitStep{{"/s", 1}, {"k/s", 1e3}, {"M/s", 1e6}}
	case QuantityBytes:
		if u.Gbits {
			return []unitStep{{u.Name(), 1e9 / 8}}
		}
		return []unitStep{{u.Name(), 1 << 20}, {"GiB/s", 1 << 30}}
	case QuantityMemory:
		return []unitStep{{"B", 1}, {"KiB", 1 << 10}, {"MiB", 1 << 20}}
	}
	return []unitStep{{"", 1}}
}

func stepOf(steps []unitStep, v float64) unitStep {
	at := steps[0]
	for _, s := range steps[1:] {
		if v >= s.of {
			at = s
		}
	}
	return at
}

// mostWhole is how often a value may have the unit of a column, and still be read with ease.
const mostWhole = 1e4

// ColumnTexts are the cells of one column by row, and its unit; empty where each cell has its own. Intervals have so
// many digits and are rounded outwards.
func (a *Answer) ColumnTexts(column, digits int, u view.Units) (unit string, texts []AnswerText) {
	steps := unitSteps(a.Columns[column].Quantity(), u)
	least, most := math.Inf(1), 0.0
	for i := range a.Rows {
		if c := a.Rows[i].cell(column); c != nil && c.Value > 0 {
			least, most = min(least, c.Value), max(most, c.Value)
		}
	}
	common := stepOf(steps, math.Sqrt(least*most)) // one that suits most of them
	if math.IsInf(least, 1) {
		common = steps[0]
	}
	own := len(steps) > 1 && most >= mostWhole*common.of
	texts = make([]AnswerText, len(a.Rows))
	for i := range a.Rows {
		c := a.Rows[i].cell(column)
		if c == nil {
			texts[i].Value = "-"
			continue
		}
		step := common
		if own {
			step = stepOf(steps, c.Value)
		}
		texts[i].Value = digits3(c.Value / step.of)
		if own {
			texts[i].Value += step.name
		}
		if w := c.Within; w != nil {
			texts[i].Within = within(c.Value, outward(w[0]/step.of, digits, math.Floor),
				outward(w[1]/step.of, digits, math.Ceil), *w)
		}
	}
	if own {
		return "", texts
	}
	return common.name, texts
}

// MostWide is how many times the median a bound can be and still say something.
const MostWide = 10

func within(median float64, low, high string, w [2]float64) string {
	switch far, wide := w[1] > MostWide*median, w[0]*MostWide < median; {
	case far && wide:
		return "no bound"
	case far:
		return "≥" + low
	case wide:
		return "≤" + high
	}
	return low + "-" + high
}

func (r *AnswerRow) cell(column int) *AnswerCell {
	if column >= len(r.Cells) {
		return nil
	}
	return r.Cells[column]
}

// digits3 keeps zeros at the end, so that the digits of a column stand below each other.
func digits3(v float64) string {
	behind := 0
	if v > 0 {
		behind = min(max(2-int(math.Floor(math.Log10(v)+1e-3)), 0), 6)
	}
	return view.Number(v, behind)
}

// outward rounds to so many digits, but no whole number, with floor or ceiling.
func outward(v float64, digits int, round func(float64) float64) string {
	if !view.Finite(v) {
		return "-"
	}
	if v <= 0 {
		return "0"
	}
	behind := digits - 1 - int(math.Floor(math.Log10(v)))
	if behind <= 0 {
		return strconv.FormatFloat(round(v), 'f', 0, 64)
	}
	by := math.Pow(10, float64(behind))
	near := math.Round(v * by) // 4.1 is 41 tenths and not one more
	if r := v * by; math.Abs(r-near) > 1e-6 {
		near = round(r)
	}
	return view.TrimZeros(strconv.FormatFloat(near/by, 'f', behind, 64))
}

// Rounds is the most that a cell rests on.
func (a *Answer) Rounds() (most int) {
	for i := range a.Rows {
		for _, c := range a.Rows[i].Cells {
			if c != nil {
				most = max(most, c.Rounds)
			}
		}
	}
	return most
}

// IntervalsNote says in a sentence what the intervals are, or why there are none.
func (a *Answer) IntervalsNote() string {
	rounds := view.Plural(int64(a.Rounds()), "round")
	if a.Confidence == 0 {
		return "Medians of " + rounds + ", which is too few for intervals"
	}
	return "Medians of " + rounds + " with intervals that all hold together with 95 %"
}

// Topics are the conclusions by topic, in their order.
func (a *Answer) Topics() []*GroupOf[string, Conclusion] {
	return GroupBy(a.Conclusions, func(c Conclusion) (string, bool) { return c.Topic, true })
}

// CountsNote says how many conclusions are omitted and comparisons undecided; empty where nothing was compared.
func (a *Answer) CountsNote() string {
	n, shown := a.Undecided, "no difference"
	if n == 0 {
		n, shown = a.Comparisons, "a difference"
	}
	return view.Capital(view.Join("; ", view.When(a.Omitted > 0, view.Plural(int64(a.Omitted), "more difference")),
		view.When(a.Comparisons > 0, fmt.Sprintf("%d of %s showed %s", n, view.Plural(int64(a.Comparisons), "comparison"),
			shown))))
}
