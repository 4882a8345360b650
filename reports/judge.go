package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

type beyond struct {
	points int
	worst  Change
	value  float64
	point  string
	taken  float64 // there
}

func (b *beyond) add(t Threshold, p ComparedPoint, ch Change, v float64) {
	if b.points++; b.points == 1 || t.worse(v, b.value) {
		b.worst, b.value, b.point, b.taken = ch, v, p.Point, p.Taken
	}
}

func (b *beyond) line(t Threshold, what string, measured int, because string) string {
	return fmt.Sprintf("%s: %s %s to %s, %s, %s (%s, %d of %s; %s%s)", what, t.name,
		FormatQuantity(b.worst.Quantity, b.worst.Old), FormatQuantity(b.worst.Quantity, b.worst.New),
		FormatPercent(b.worst.Percent), t.words(), b.point, b.points, view.Plural(int64(measured), "point"), b.worst.Test,
		because)
}

func (c *Comparison) judge(t Threshold) {
	var measured int
	var missed, undecided beyond
	for _, p := range c.Points {
		i := slices.IndexFunc(p.Changes, func(ch Change) bool { return ch.Figure == t.metric.Name })
		if i < 0 {
			continue
		}
		measured++
		ch := p.Changes[i]
		v := ch.New
		if t.relative {
			v = percent(ch.Old, ch.New)
		}
		switch {
		case !t.missedBy(v):
		case t.relative && !t.medians && (!ch.Significant || math.Abs(v) <= 100*p.Taken):
			undecided.add(t, p, ch, v)
		default:
			missed.add(t, p, ch, v)
		}
	}
	if measured == 0 {
		c.Missed = append(c.Missed, fmt.Sprintf("failed: no point of both runs has a %s, %s", t.name, t.words()))
	}
	if missed.points > 0 {
		c.Missed = append(c.Missed, missed.line(t, "failed", measured, ""))
	}
	if undecided.points > 0 {
		because := ", could be chance"
		if undecided.worst.Significant {
			because = fmt.Sprintf(", the machine took up to %s %% of a window", view.Number(100*undecided.taken, 1))
		} else if n := min(undecided.worst.OldN, undecided.worst.NewN); n < testableRepeats {
			because = fmt.Sprintf(", and no test finds fewer than %d repeats a side significant", testableRepeats)
		}
		c.Undecided = append(c.Undecided, undecided.line(t, "undecided", measured, because))
	}
}

// testableRepeats of both sides can be significant by the Mann-Whitney test: of 3 and 3, p is 2/20 at least.
const testableRepeats = 4

// FormatPercent is a change with its sign; nil is one from zero.
func FormatPercent(p *float64) string {
	if p == nil {
		return "from zero"
	}
	return fmt.Sprintf("%+.2f%%", *p)
}

// WriteJSON writes the comparison, indented and with a final newline.
func (c *Comparison) WriteJSON(w io.Writer) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // thresholds hold > and <, and people read this too
	enc.SetIndent("", "  ")
	if err := enc.Encode(c); err != nil {
		return fmt.Errorf("write comparison: %w", err)
	}
	return WriteAll(w, "comparison", out.Bytes())
}

// OnlyLines lists the points that have no partner.
func (c *Comparison) OnlyLines() []string {
	line := func(what string) func(name string) string {
		return func(name string) string { return what + name }
	}
	return slices.Concat(view.Each(c.Interrupted, line("interrupted, and not compared: ")),
		view.Each(c.OnlyOld, line("only in the old run: ")), view.Each(c.OnlyNew, line("only in the new run: ")))
}

// Verdict says in words what the test means.
func (c *Change) Verdict() string {
	test, _, _ := strings.Cut(c.Test, ", ")
	switch {
	case c.P == nil && c.Significant:
		return "significant, " + c.Test
	case c.P == nil:
		return c.Test
	case c.Significant:
		return "significant, " + test
	}
	return "could be chance, " + test
}

// Texts are the figure, its old and new value, the change, and the verdict.
func (c *Change) Texts() []string {
	return []string{c.Figure, FormatQuantity(c.Quantity, c.Old), FormatQuantity(c.Quantity, c.New),
		FormatPercent(c.Percent), c.Verdict()}
}

// Few tells a change that no test could have told from chance.
func (c *Change) Few() bool { return c.P != nil && min(c.OldN, c.NewN) < testableRepeats }

// Footnote is due where a change of Few is marked with *, else "".
func (c *Comparison) Footnote() string {
	for _, p := range c.Points {
		if slices.ContainsFunc(p.Changes, func(ch Change) bool { return ch.Few() }) {
			return fmt.Sprintf("* no test tells a change between fewer than %d repeats a side from chance", testableRepeats)
		}
	}
	return ""
}
