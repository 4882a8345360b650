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

// topic is the question that a column answers.
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
		var same []*column
		for _, o := range m.columns {
			if o.shown.Title == c.shown.Title && o.shown.Point == c.shown.Point {
				same = append(same, o)
			}
		}
		if extra := c.conditions(same); extra != "" {
			defer func() { c.shown.Point += ", " + extra; c.words.object += " (" + extra + ")" }()
		}
	}
}

// title names a column by itself.
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

// conditions are those of a column in which it differs from others.
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
