package answer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// comparison is one row beside another in one column; factor says how many times better it is.
type comparison struct {
	*column
	of, base *row
	rounds   int
	factor   float64
	within   *[2]float64
	clear    *[2]float64
	span     [2]float64 // of the rounds
	noise    float64    // how many times less the factor may be for noise, the median of the rounds
}

// comparisons are fixed before figures are seen: a stack beside itself without its outermost layer, or the column's
// base.
func (m *matrix) comparisons() (all []*comparison) {
	for _, c := range m.columns {
		for _, l := range m.rows {
			if base := m.base(c, l); base != nil && len(l.cells[c]) > 0 {
				x := &comparison{column: c, of: l, base: base}
				if x.rounds = len(x.shared()); x.rounds > 0 {
					all = append(all, x)
				}
			}
		}
	}
	return all
}

// base is the row that a row is compared with; nil for one that others are compared with.
func (m *matrix) base(c *column, l *row) *row {
	find := func(is func(o *row) bool) *row {
		o, _ := view.First(m.rows, func(o *row) bool { return len(o.cells[c]) > 0 && is(o) })
		return o
	}
	if first := find(func(o *row) bool { return o.stack == l.stack }); first != l {
		return first
	}
	if m.ofVariants {
		return nil
	}
	for rest := reports.Layers(l.stack); len(rest) > 1; rest = rest[1:] {
		without := strings.Join(rest[1:], "+")
		if o := find(func(o *row) bool { return o.stack == without && o.variant == l.variant }); o != nil {
			return o
		}
	}
	o := find(func(o *row) bool { return o.variant == l.variant && kernelSockets.MatchString(o.stack) })
	if o == nil {
		o = find(func(o *row) bool { return o.variant == l.variant })
	}
	if o == l {
		return nil
	}
	return o
}

var kernelSockets = regexp.MustCompile(`^(tcp|grpc\(tcp\b)`)

func (x *comparison) shared() []int {
	return view.Only(x.of.cells[x.column].rounds(), func(round int) bool {
		_, ok := x.base.cells[x.column][round]
		return ok
	})
}

func (x *comparison) judge(level float64) {
	up, down := x.of.cells[x.column], x.base.cells[x.column] // the factor is up over down
	if x.Better != reports.More {
		up, down = down, up
	}
	var u, d []Value
	for _, round := range x.shared() {
		u, d = append(u, up[round].Value), append(d, down[round].Value)
	}
	r := RatioOf(u, d, level)
	x.factor, x.clear, x.within = r.Median, r.Clear, r.Within
	if x.noise = r.Median / r.least; x.factor < 1 {
		x.noise = r.most / r.Median
	}
	for i := range u {
		ratio := u[i].Value / d[i].Value
		if i == 0 {
			x.span = [2]float64{ratio, ratio}
		}
		x.span = [2]float64{min(x.span[0], ratio), max(x.span[1], ratio)}
	}
}

// decided tells whether the interval has a difference: it is beyond chance and beyond what noise can have done.
func (x *comparison) decided() bool { return x.within != nil && (x.within[0] > 1 || x.within[1] < 1) }

// plain tells, where there is no interval, whether all rounds agree and noise does not explain it.
func (x *comparison) plain() bool {
	return x.factor > x.noise && x.span[0] > 1 || x.factor*x.noise < 1 && x.span[1] < 1
}

func (x *comparison) ratio(m *matrix) reports.AnswerRatio {
	return reports.AnswerRatio{Column: slices.Index(m.columns, x.column), Factor: x.factor, Within: x.within}
}

// strength is how far the interval is from no difference, or without one the factor.
func (x *comparison) strength() float64 {
	near := x.factor
	if x.within != nil {
		near = x.within[0]
		if x.factor < 1 {
			near = x.within[1]
		}
	}
	if near < 1 {
		near = 1 / near
	}
	return near
}

// Interval is the median over rounds and an interval that holds it; nil where the rounds are too few for the level.
type Interval struct {
	Median float64
	Within *[2]float64
}

// Pairs is the ratio of a to b over rounds. Each round gives one ratio, so that a pace which both sides share cancels
// out; the interval is exact whatever the distribution of the ratios is (sign test).
func Pairs(a, b []float64, level float64) Interval {
	ratios := make([]float64, len(a))
	for i := range a {
		ratios[i] = a[i] / b[i]
	}
	return medianOf(ratios, level)
}

// Value is one figure of one round, with the least and greatest that it can have been on a machine that takes nothing.
type Value struct{ Value, Low, High float64 }

// ValueOf is that of a result's figure.
func ValueOf(r *reports.Result, f reports.Figure) Value {
	low, high := bounds(r, f)
	return Value{f.Value, low, high}
}

// Ratio is that of two sides over rounds: its median, the interval with what noise can have done, and without.
type Ratio struct {
	Median        float64
	Within, Clear *[2]float64
	least, most   float64 // medians of the ratios with the noise against and for it
}

// RatioOf is a over b, which have a value for each round. A nil b is 1 in every round.
func RatioOf(a, b []Value, level float64) Ratio {
	var above, below [3][]float64 // low, value, high
	for i, v := range a {
		w := Value{1, 1, 1}
		if b != nil {
			w = b[i]
		}
		for k, x := range []float64{v.Low, v.Value, v.High} {
			above[k] = append(above[k], x)
		}
		for k, x := range []float64{w.High, w.Value, w.Low} {
			below[k] = append(below[k], x)
		}
	}
	least, measured, most := Pairs(above[0], below[0], level), Pairs(above[1], below[1], level),
		Pairs(above[2], below[2], level)
	r := Ratio{Median: measured.Median, Clear: measured.Within, least: least.Median, most: most.Median}
	if r.Clear != nil {
		r.Within = &[2]float64{least.Within[0], finite(most.Within[1], r.Clear[1])}
	}
	return r
}

func medianOf(values []float64, level float64) Interval {
	in := Interval{Median: reports.Median(values)}
	if cut, covered := reports.MedianRanks(len(values), level); covered >= level {
		sorted := slices.Sorted(slices.Values(values))
		in.Within = &[2]float64{sorted[cut], sorted[len(sorted)-1-cut]}
	}
	return in
}

// family is how sure all intervals of a run are together: at most one run of twenty has a false sentence.
const family = 0.95

// Level is that of each of m intervals that hold together (Bonferroni).
func Level(m int) float64 { return 1 - (1-family)/float64(max(m, 1)) }

// RoundsFor is how many rounds an interval at that level needs.
func RoundsFor(level float64) int {
	for n := 1; ; n++ {
		if _, covered := reports.MedianRanks(n, level); covered >= level {
			return n
		}
	}
}
