package claims

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/answer"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Verdict is what the results say of a claim.
type Verdict string

// The verdicts. A claim has the first of these that one of its rules has.
const (
	NotShown  Verdict = "not shown"
	Undecided Verdict = "undecided"            // the interval has the bound in it, or time ran out
	Cannot    Verdict = "cannot be shown here" // what it needs is missing
	Shown     Verdict = "shown"
	Figures   Verdict = "figures" // of a rule without bounds
)

var verdicts = []Verdict{NotShown, Undecided, Cannot, Shown, Figures}

// Finding is what the results say of one rule.
type Finding struct {
	Text    string  `json:"text"`
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"` // it is not shown or not decided

	more float64 // rounds beyond those made that should decide it; 0: rounds do not
}

// series is a figure by round.
type series struct {
	reports.Figure
	Rounds map[int]answer.Value
}

type reader func(At) (series, error)

// judge holds the rule against what was measured, at a level that all intervals of the paper share.
func (r Rule) judge(read reader, level float64) Finding {
	f := Finding{Verdict: Shown}
	var texts []string
	for _, t := range r.terms {
		got := r.judgeTerm(t, read, level)
		texts = append(texts, strings.TrimSpace(t.name+" "+got.Text))
		if slices.Index(verdicts, got.Verdict) < slices.Index(verdicts, f.Verdict) {
			f.Verdict, f.Why = got.Verdict, got.Why
		}
		f.more = max(f.more, got.more)
	}
	f.Text = r.What + ": " + strings.Join(texts, ", ")
	if !r.bounded() && f.Verdict == Shown {
		f.Verdict = Figures
	}
	unit := digits
	if t := r.terms[0]; t.to == nil {
		if s, err := read(t.of); err == nil {
			unit = func(v float64) string { return quantity(s.Figure, v) }
		}
	}
	if b := r.bounds(unit); b != "" {
		f.Text += "; " + b
	}
	if o, ok := r.against(); ok && f.Verdict == Shown {
		if c := o.judge(read, level); c.Verdict == Shown {
			f.Verdict, f.Why = Undecided, "the arm that must break the rule keeps it: "+c.Text
		}
	}
	return f
}

func (r Rule) judgeTerm(t term, read reader, level float64) Finding {
	a, err := read(t.of)
	if err != nil {
		return missing(err)
	}
	rounds := slices.Sorted(maps.Keys(a.Rounds))
	var above, below []answer.Value
	unit := func(v float64) string { return quantity(a.Figure, v) }
	if t.to != nil {
		b, err := read(*t.to)
		if err != nil {
			return missing(err)
		}
		rounds = slices.DeleteFunc(rounds, func(n int) bool { v, ok := b.Rounds[n]; return !ok || v.Value <= 0 })
		for _, n := range rounds {
			below = append(below, b.Rounds[n])
		}
		unit = func(v float64) string { return digits(v) + "x" }
	}
	for _, n := range rounds {
		above = append(above, a.Rounds[n])
	}
	if len(rounds) == 0 {
		return Finding{Text: "-", Verdict: Undecided, Why: "no round has both figures, or one is 0"}
	}
	if r.exact {
		for i, v := range below {
			above[i].Value /= v.Value
		}
		return r.judgeExact(above, unit)
	}
	x := answer.RatioOf(above, below, level)
	f := Finding{Text: unit(x.Median)}
	if !r.bounded() {
		f.Verdict = Shown // without an interval: those of the rules alone share the level
		return f
	}
	if x.Clear == nil {
		f.more = float64(answer.RoundsFor(level) - len(rounds))
		f.Verdict, f.Why = Undecided, view.Plural(int64(f.more), "more round")
		return f
	}
	f.Text += fmt.Sprintf(" (%s to %s)", strings.TrimSuffix(unit(x.Clear[0]), "x"), unit(x.Clear[1]))
	switch {
	case r.within(x.Within[0]) && r.within(x.Within[1]):
		f.Verdict = Shown
	case r.outside(*x.Within):
		f.Verdict, f.Why = NotShown, ""
	case r.within(x.Clear[0]) && r.within(x.Clear[1]), r.outside(*x.Clear):
		f.Verdict, f.Why = Undecided, fmt.Sprintf("others used the CPUs: with that it is %s to %s",
			strings.TrimSuffix(unit(x.Within[0]), "x"), unit(x.Within[1]))
		f.more = float64(len(rounds)) // a quieter time may decide it
	default:
		f.more = r.more(x, len(rounds))
		f.Verdict, f.Why = Undecided, "about "+view.Plural(int64(f.more), "more round")
		if f.more >= manyRounds {
			f.Why = fmt.Sprintf("more than %d more rounds: the median is next to the bound", manyRounds)
		}
	}
	return f
}

// missing is what a figure says that there is none of.
func missing(err error) Finding {
	f := Finding{Text: "-", Verdict: Undecided, Why: err.Error()}
	switch {
	case errors.As(err, new(notHere)):
		f.Verdict = Cannot
	case errors.As(err, new(broken)):
		f.Verdict = NotShown
	}
	return f
}

func (r Rule) judgeExact(values []answer.Value, unit func(float64) string) Finding {
	least, most, f := math.Inf(1), math.Inf(-1), Finding{Verdict: Shown}
	for _, v := range values {
		least, most = min(least, v.Value), max(most, v.Value)
		if !r.within(v.Value) {
			f.Verdict = NotShown
		}
	}
	if f.Text = unit(least); most > least {
		f.Text += " to " + unit(most)
	}
	return f
}

func (r Rule) within(v float64) bool {
	return v >= r.least && (r.most == 0 && !r.zero || v <= r.most)
}

func (r Rule) outside(in [2]float64) bool {
	return in[1] < r.least || (r.most > 0 || r.zero) && in[0] > r.most
}

const manyRounds = 1000

// more is how many more rounds should decide: an interval shrinks with the root of their number.
func (r Rule) more(x answer.Ratio, n int) float64 {
	low, high := x.Clear[0], x.Clear[1]
	bound, end := r.least, high
	if low >= r.least {
		bound = r.most
	}
	if bound < x.Median {
		end = low
	}
	log := func(v float64) float64 { return math.Log(max(v, 1e-12)) }
	distance, half := math.Abs(log(x.Median)-log(bound)), math.Abs(log(end)-log(x.Median))
	more := math.Ceil(float64(n) * ((half/distance)*(half/distance) - 1))
	if !(more < manyRounds) {
		return manyRounds
	}
	return max(more, 1)
}

func quantity(f reports.Figure, v float64) string {
	switch f.Quantity {
	case reports.QuantityTime:
		return view.NsLabel(v)
	case reports.QuantityRate:
		return view.RateLabel(v)
	case reports.QuantityBytes:
		return view.BandwidthLabel(v)
	case reports.QuantityMemory:
		return memory(v)
	}
	return digits(v)
}

func memory(v float64) string {
	unit := "B"
	for _, larger := range []string{"KiB", "MiB", "GiB"} {
		if v < 1<<10 {
			break
		}
		v, unit = v/(1<<10), larger
	}
	return digits(v) + " " + unit
}

func digits(v float64) string {
	switch a := math.Abs(v); {
	case v == math.Trunc(v) && a < 1e6, a >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case a >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.0995:
		return view.TrimZeros(fmt.Sprintf("%.2f", v))
	}
	return fmt.Sprintf("%.2g", v)
}
