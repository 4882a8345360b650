package answer

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// words are how a sentence speaks of a column: a stack does that to those things.
type words struct{ verb, object string }

func (c *column) topic() string {
	switch {
	case strings.HasPrefix(c.Name, underLoad):
		return reports.TopicBoth
	case c.Name == "bw" || c.Name == "p50" && c.size > mostSmall:
		return reports.TopicBulk
	case c.Name == "p50" || c.Name == "rate":
		return reports.TopicSmall
	}
	return view.Capital(strings.ReplaceAll(c.workload, "_", " "))
}

// mostSmall is the size up to which a message's time is more than that of its bytes, on any path.
const mostSmall = 16 << 10

// describe writes titles and phrases. A condition is named where it tells two columns apart.
func (m *matrix) describe() {
	for _, c := range m.columns {
		c.title()
	}
	for _, c := range m.columns {
		same := view.Only(m.columns, func(o *column) bool {
			return o.shown.Title == c.shown.Title && o.shown.Point == c.shown.Point
		})
		if extra := c.conditions(same); extra != "" {
			defer func() { c.shown.Point += ", " + extra; c.words.object += " (" + extra + ")" }()
		}
	}
}

func (c *column) title() {
	op := strings.ReplaceAll(view.Visible(c.op), "_", " ")
	one := strings.TrimSpace(reports.SizeLabel(c.size) + " " + op)
	many := one + "s"
	c.shown = reports.AnswerColumn{Point: one, Figure: c.Name, Unit: c.Unit(), Better: c.Better, Pays: c.pays}
	switch {
	case c.Name == "p50" && c.roundTrip == reports.RoundTripHalf:
		c.shown.Title, c.words = reports.TitleHalf, words{"delivers", "a " + one}
	case c.Name == "p50" && c.isCall():
		c.shown.Title, c.words = reports.TitleWhole, words{"answers", "a " + one}
	case c.Name == "p50":
		c.shown.Title, c.words = reports.TitleWhole, words{"completes", "a " + one}
	case c.Name == "bw":
		c.shown.Title, c.words = "bulk rate", words{"moves", many}
	case c.Name == "rate" && c.isCall():
		c.shown.Title, c.words = "call rate", words{"answers", many}
	case c.Name == "rate":
		c.shown.Title, c.words = "message rate", words{"moves", many}
	case c.Name == underLoad+"bw":
		c.shown.Title, c.words = "bulk beside probes", words{"moves", many + " beside probes"}
	case c.Name == underLoad+"p50":
		c.shown.Title, c.words = "probe beside bulk", words{"answers", "a probe behind " + many}
	default:
		label := reports.FigureLabel(c.Name)
		c.shown.Title, c.words = label, words{"completes", label + " of " + one}
	}
}

func (c *column) conditions(same []*column) string {
	differ := func(value func(c *column) any) bool {
		return slices.ContainsFunc(same, func(o *column) bool { return value(o) != value(c) })
	}
	var out []string
	for _, part := range []struct {
		value func(c *column) any
		text  string
	}{
		{func(c *column) any { return c.workload }, view.Visible(c.workload)},
		{func(c *column) any { return c.run }, "run " + view.Visible(c.run)},
		{func(c *column) any { return c.depth }, "depth " + view.Integer(int64(c.depth))},
		{func(c *column) any { return c.qps }, view.Plural(int64(c.qps), "QP")},
		{func(c *column) any { return c.threads }, view.Plural(int64(c.threads), "thread")},
		{func(c *column) any { return c.rate }, offered(c.rate)},
		{func(c *column) any { return c.arrivals }, view.Visible(c.arrivals) + " arrivals"},
		{func(c *column) any { return c.impairment }, view.Visible(c.impairment)},
		{func(c *column) any { return c.appWork }, "application work " + view.NsLabel(float64(c.appWork))},
		{func(c *column) any { return c.neighbours }, beside(c.neighbours)},
		{func(c *column) any { return c.dims }, c.dims},
	} {
		if differ(part.value) && strings.TrimSpace(part.text) != "" {
			out = append(out, part.text)
		}
	}
	return strings.Join(out, ", ")
}

func beside(neighbours int) string {
	if neighbours == 0 {
		return "no neighbours"
	}
	return view.Plural(int64(neighbours), "neighbour")
}

func offered(rate float64) string {
	if rate == 0 {
		return "closed loop"
	}
	return view.RateLabel(rate) + " offered"
}

// times are the ratios of one sentence with equally many digits: two or three, and one more where all look the same.
func times(values ...float64) (texts []string) {
	least, most := slices.Min(values), slices.Max(values)
	digits := 0
	switch {
	case least < 0.1 && least > 0:
		digits = 1 - int(math.Floor(math.Log10(least)))
	case least < 1.095:
		digits = 2
	case least < 99.95:
		digits = 1
	}
	if len(values) > 1 && fmt.Sprintf("%.*f", digits, least) == fmt.Sprintf("%.*f", digits, most) {
		digits = max(digits, 2)
	}
	for _, v := range values {
		of := digits
		if v >= 99.95 {
			of = 0
		}
		text := fmt.Sprintf("%.*f", of, v)
		if strings.Contains(text, ".") {
			text = view.TrimZeros(text)
		}
		texts = append(texts, text+"x")
	}
	return texts
}

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

// noisy tells whether noise moves the near end by a tenth, or the far end says nothing.
func (x *comparison) noisy() bool {
	with, without, far := x.within[0], x.clear[0], x.within[1]/x.factor
	if x.factor < 1 {
		with, without, far = 1/x.within[1], 1/x.clear[1], x.factor/x.within[0]
	}
	const worth = 1.1
	return without > worth*with || far > reports.MostWide
}

func bare(text string) string { return strings.TrimSuffix(text, "x") }

func (l *row) name() string {
	return (&reports.AnswerRow{Stack: l.stack, Variant: l.variant}).Name()
}

func rounds(n int) string {
	if n == 1 {
		return "one round"
	}
	return view.Plural(int64(n), "round")
}
