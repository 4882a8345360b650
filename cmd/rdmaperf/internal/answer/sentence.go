package answer

import (
	"fmt"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// text is the comparison in one sentence, with what it costs in another.
func (x *comparison) text(price *comparison) string {
	// A shorter time reads "so many times sooner"; all else is a multiple of the base's figure.
	ratio, sooner := x.factor, x.Quantity == reports.QuantityTime && x.factor > 1
	turned := x.Better == reports.Less && !sooner
	if turned {
		ratio = 1 / ratio
	}
	turn := func(in [2]float64) (from, to float64) {
		if turned {
			return 1 / in[1], 1 / in[0]
		}
		return in[0], in[1]
	}
	near, quote, within := "", times(ratio)[0], ""
	switch {
	case x.within == nil && x.rounds == 1:
		within = " (no interval: one round)"
	case x.within == nil:
		from, to := turn(x.span)
		t := times(ratio, from, to)
		quote, within = t[0], fmt.Sprintf(" (no interval: %s, %s to %s)", rounds(x.rounds), bare(t[1]), t[2])
	case x.noisy():
		end, to := turn(*x.within)
		if near = "at least "; ratio < 1 {
			near, end = "no more than ", to
		}
		t := times(ratio, end)
		quote, within = t[1], " ("+t[0]+" measured)"
	default:
		from, to := turn(*x.within)
		t := times(ratio, from, to)
		quote, within = t[0], fmt.Sprintf(" (%s to %s)", bare(t[1]), t[2])
	}
	subject, base := x.of.name(), x.base.name()
	var s string
	switch {
	case sooner:
		s = fmt.Sprintf("%s %s %s %s%s sooner than %s%s", subject, x.words.verb, x.words.object, near, quote, base,
			within)
	case x.Quantity == reports.QuantityTime:
		s = fmt.Sprintf("%s takes %s%s the time of %s for %s%s", subject, near, quote, base, x.words.object, within)
	case x.Quantity == reports.QuantityRate || x.Quantity == reports.QuantityBytes:
		s = fmt.Sprintf("%s %s %s at %s%s the rate of %s%s", subject, x.words.verb, x.words.object, near, quote, base,
			within)
	default:
		s = fmt.Sprintf("%s has %s%s the %s of %s%s", subject, near, quote, x.words.object, base, within)
	}
	if price != nil {
		s += price.asPrice()
	}
	return s
}

// asPrice is the comparison as what another costs.
func (x *comparison) asPrice() string {
	const of = " of the bulk's rate"
	switch {
	case x.within != nil && !x.decided():
		return ", with no difference shown in the bulk's rate"
	case x.within == nil || !x.noisy():
		return ", at " + times(x.factor)[0] + of
	case x.factor < 1:
		return ", at no more than " + times(x.within[1])[0] + of
	}
	return ", at no less than " + times(x.within[0])[0] + of
}

// noisy tells whether the noise of the machine moves the interval so far that the measured factor is not the one to
// quote, by a tenth, or that its far end says nothing.
func (x *comparison) noisy() bool {
	with, without, far := x.within[0], x.clear[0], x.within[1]/x.factor
	if x.factor < 1 {
		with, without, far = 1/x.within[1], 1/x.clear[1], x.factor/x.within[0]
	}
	const worth = 1.1
	return without > worth*with || far > reports.MostWide
}

// bare is a ratio without its x.
func bare(text string) string { return strings.TrimSuffix(text, "x") }

// name is that of the row as an answer has it.
func (l *row) name() string {
	r := reports.AnswerRow{Stack: l.stack, Variant: l.variant}
	return r.Name()
}

func rounds(n int) string {
	if n == 1 {
		return "one round"
	}
	return view.Plural(int64(n), "round")
}
