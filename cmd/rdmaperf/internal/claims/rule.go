package claims

import "fmt"

// Rule is what must hold of the results of a claim: each term is within the bounds.
type Rule struct {
	What  string // what is compared, in a few words
	terms []term
	least float64  // 0: none
	most  float64  // 0: none
	zero  bool     // most is 0 itself
	exact bool     // the value of every round, without an interval
	paper bool     // the bounds are the paper's
	other At       // the arm for which the rule must not hold
	pass  *Run     // must succeed
	cases []string // of it, that must pass; empty: all
}

type term struct {
	name string // that tells it from the others of the rule
	of   At
	to   *At
}

// Ratio compares a figure with another, which has the run, figure, stack and conditions of the first but for those
// given.
func Ratio(what string, of, to At) Rule {
	if to.Run == nil || to.Figure == "" || to.Stack == "" {
		to = of.instead(of, to)
	}
	return Rule{What: what, terms: []term{{of: of, to: &to}}}
}

// Growth is the ratio of a figure at the end of a dimension to that at its begin.
func Growth(what string, of At, dim, from, to string) Rule {
	return Ratio(what, of.with(dim+"="+to), of.with(dim+"="+from))
}

// Order is that each figure is less than the one behind it.
func Order(what string, names []string, of ...At) Rule {
	r := Rule{What: what, least: 1 + 1e-9}
	for i := range of[:len(of)-1] {
		r.terms = append(r.terms, term{names[i+1] + " over " + names[i], of[i+1], &of[i]})
	}
	return r
}

// Flat is that a figure stays within a factor of its first over the values of a dimension.
func Flat(what string, of At, dim string, factor float64, values ...string) Rule {
	r := Rule{What: what, least: 1 / factor, most: factor}
	first := of.with(dim + "=" + values[0])
	for _, v := range values[1:] {
		r.terms = append(r.terms, term{v + " over " + values[0], of.with(dim + "=" + v), &first})
	}
	return r
}

// Value is a figure by itself.
func Value(what string, of At) Rule { return Rule{What: what, terms: []term{{of: of}}} }

// Count is a figure without scatter: every round must be within the bounds.
func Count(what string, of At) Rule {
	return Value(what, of).Exact()
}

// Pass is that a command succeeds: of "conform", that those of its cases pass which one of the patterns names, or all.
func Pass(what string, run *Run, cases ...string) Rule {
	return Rule{What: what, pass: run, cases: cases}
}

// Exact says that the figures have no scatter: the rule must hold in every round.
func (r Rule) Exact() Rule { r.exact = true; return r }

// AtLeast bounds each term from below.
func (r Rule) AtLeast(x float64) Rule { r.least = x; return r }

// AtMost bounds each term from above.
func (r Rule) AtMost(x float64) Rule { r.most, r.zero = x, x == 0; return r }

// Published says that the bounds are the paper's own.
func (r Rule) Published() Rule { r.paper = true; return r }

// Against names the arm for which the rule must not hold: what is given of it replaces that of the first figure.
func (r Rule) Against(other At) Rule { r.other = other; return r }

func (r Rule) bounded() bool { return r.least > 0 || r.most > 0 || r.zero }

// against is the rule for the arm that must break it; false where it names none.
func (r Rule) against() (Rule, bool) {
	if r.other == (At{}) {
		return r, false
	}
	var terms []term
	first := r.terms[0].of
	for _, t := range r.terms {
		t.of = t.of.instead(first, r.other)
		if t.to != nil && t.to.Run == first.Run && t.to.Stack == first.Stack {
			to := t.to.instead(first, r.other)
			t.to = &to
		}
		terms = append(terms, t)
	}
	r.terms, r.other = terms, At{}
	return r, true
}

func (r Rule) ats() (all []At) {
	for _, t := range r.terms {
		all = append(all, t.of)
		if t.to != nil {
			all = append(all, *t.to)
		}
	}
	if o, ok := r.against(); ok {
		all = append(all, o.ats()...)
	}
	return all
}

func (r Rule) bounds(unit func(float64) string) (text string) {
	switch {
	case r.least > 1 && r.least < 1.001:
		text = "more than 1"
	case r.least > 0 && (r.most > 0 || r.zero):
		text = fmt.Sprintf("%s to %s", unit(r.least), unit(r.most))
	case r.least > 0:
		text = "at least " + unit(r.least)
	case r.most > 0 || r.zero:
		text = "at most " + unit(r.most)
	default:
		return ""
	}
	if r.paper {
		return text + " by the paper"
	}
	return text
}
