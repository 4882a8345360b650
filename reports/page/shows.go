package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// legible leaves as many lines in a chart as differ in colour and dash: medians before tails. Its data has all.
func legible(f *view.Figure) {
	c, ok := f.Chart.(*view.LineChart)
	if !ok || len(c.Series) <= view.Slots {
		return
	}
	all := len(c.Series)
	c.Series = slices.DeleteFunc(slices.Clone(c.Series), func(s view.Series) bool { return s.Thin })
	if len(c.Series) == 0 || len(c.Series) > view.Slots {
		c.Series = c.Series[:min(len(c.Series), view.Slots)]
	}
	f.Caption = strings.TrimPrefix(f.Caption+fmt.Sprintf(", %d of %d lines, the others in its data", len(c.Series), all),
		", ")
}

// shows is how many times the least of a chart's stacks the greatest has, at its median or the end of its sweep.
func shows(c view.Chart) string {
	var r span
	var unit func(float64) string
	label, at := "", ""
	switch c := c.(type) {
	case *view.LineChart:
		unit, label = c.YUnit, c.YLabel
		x := c.X.Hi
		if c.XText != nil { // percentiles
			x, at = 2, "At the median"
		} else if n := len(c.XTicks); n > 0 && c.XTicks[n-1].At == x {
			at = "At " + c.XTicks[n-1].Label
		} else {
			return ""
		}
		for _, s := range c.Series {
			i := slices.IndexFunc(s.Points, func(p view.Point) bool { return p.X == x && p.Tip != "" })
			if i >= 0 && !s.Thin {
				r.add(s.Points[i].Y, cmp.Or(s.Short, s.Name))
			}
		}
	case *view.BarChart:
		unit, label = c.Unit, c.XLabel
		block := ""
		for _, b := range c.Bars {
			if block = cmp.Or(b.Block, block); !b.Thin {
				r.add(b.Value, block)
			}
		}
	case *view.PairChart:
		unit, at = c.Unit, "Loaded, at the median"
		for _, b := range c.Bars {
			if b.Label == "p50" {
				r.add(b.Other, b.Block)
			}
		}
	}
	return r.words(unit, label, at)
}

type span struct {
	low, high         float64
	lowName, highName string
	values            int
}

func (r *span) add(v float64, name string) {
	if !view.Finite(v) || !(v > 0) {
		return
	}
	if r.values++; r.values == 1 || v < r.low {
		r.low, r.lowName = v, name
	}
	if r.values == 1 || v > r.high {
		r.high, r.highName = v, name
	}
}

// words has the unit that stands in brackets in the label of the axis, where its ticks have none.
func (r *span) words(unit func(float64) string, label, at string) string {
	if r.values == 0 {
		return ""
	}
	_, of, _ := strings.Cut(label, "[")
	text := func(v float64) string { return strings.TrimSpace(unit(v) + " " + strings.TrimSuffix(of, "]")) }
	if at != "" {
		at += ": "
	}
	switch {
	case r.values == 1:
		return at + text(r.high)
	case r.high < alike*r.low:
		return at + "all " + text(r.low) + " to " + text(r.high)
	}
	return at + r.lowName + " " + text(r.low) + ", " + r.highName + " " + view.Digits3(r.high/r.low) + "x of that"
}

// alike is how many times another a value is that reads as the same.
const alike = 1.05
