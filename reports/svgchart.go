package reports

import (
	"cmp"
	"html/template"
	"math"
	"slices"
	"strings"
)

// point is one value of a series. High, when above y, ends a whisker: the tail
// that belongs to a median.
type point struct {
	x, y, high float64
	tip        string // hover text; a point without one has no marker
	few        bool   // rests on too few samples
	gap        bool   // the one before it has no place on the axis
}

// series is one line of a chart.
type series struct {
	name   string
	short  string // for the key, if not name
	slot   int
	thin   bool
	points []point
}

// lineChart is a drawing with a labelled grid and one line a series.
type lineChart struct {
	id, title, desc string
	yLabel, xLabel  string
	x               scale
	xTicks          []tick
	yUnit           func(float64) string
	linear          bool // the y axis begins at zero; else it is logarithmic
	series          []series
}

// render draws the chart. Values that cannot stand on the y axis (not a number, zero
// on a logarithmic one) are left out and leave a gap.
func (c *lineChart) render() template.HTML {
	lo, hi := math.Inf(1), math.Inf(-1)
	for i := range c.series {
		s := &c.series[i]
		kept := make([]point, 0, len(s.points))
		gap := false
		for _, p := range s.points {
			if !(p.y > 0 || c.linear && p.y == 0) || c.linear && p.y >= axisMax || !finite(p.y) || !finite(p.x) {
				gap = true
				continue
			}
			p.gap, gap = gap, false
			if !finite(p.high) {
				p.high = 0
			}
			lo, hi = min(lo, p.y), max(hi, p.y, p.high)
			kept = append(kept, p)
		}
		s.points = kept
	}
	y := scale{log: !c.linear}
	var yTicks []tick
	if c.linear {
		yTicks, y.hi = linearTicks(hi, c.yUnit)
	} else {
		y.lo, y.hi = logSpan(lo, hi)
		yTicks = logTicks(y.lo, y.hi, c.yUnit)
	}

	var body svgWriter
	entries := make([]legendEntry, len(c.series))
	for i, s := range c.series {
		entries[i] = legendEntry{name: cmp.Or(s.short, s.name), slot: s.slot, thin: s.thin}
	}
	top := body.legend(entries) + 24
	bottom := top + plotHeight
	c.x.from, c.x.to = plotLeft+8, svgWidth-plotRight-2
	y.from, y.to = bottom, top

	body.text(2, top-9, "start", "al", shorten(c.yLabel, axisRoom))
	for _, t := range yTicks {
		body.line(plotLeft, y.pos(t.at), svgWidth-plotRight+4, y.pos(t.at), "gr")
		body.text(plotLeft-5, y.pos(t.at)+4, "end", "tk", t.label)
	}
	room := math.Inf(-1) // where the last tick label ended
	for _, t := range c.xTicks {
		x := c.x.pos(t.at)
		body.line(x, top, x, bottom, "gr")
		half := charWidth * float64(len([]rune(t.label))) / 2
		if x-half > room {
			body.text(min(x, svgWidth-half), bottom+16, "middle", "tk", t.label)
			room = x + half + 3
		}
	}
	body.line(plotLeft, bottom, svgWidth-plotRight+4, bottom, "ax")
	body.text((plotLeft+svgWidth-plotRight)/2, bottom+34, "middle", "al", c.xLabel)

	for i, s := range c.series {
		// Whiskers of two series at the same place stand beside each other, and
		// the series moves with its whiskers.
		shift := 0.0
		if slices.ContainsFunc(s.points, func(p point) bool { return p.high > p.y }) {
			shift = (float64(i) - float64(len(c.series)-1)/2) * min(5, 20/float64(len(c.series)))
		}
		body.f(`<g class="se s%d%s" data-n="%d">`, s.slot%slots, thinClass(s.thin), i)
		c.drawLine(&body, s, y, shift)
		for _, p := range s.points {
			if p.tip == "" {
				continue
			}
			x := c.x.pos(p.x) + shift
			class := "pt"
			if p.few {
				class += " few"
			}
			body.f(`<g class="%s">`, class)
			if p.high > p.y {
				body.line(x, y.pos(p.y), x, y.pos(p.high), "wh")
				body.line(x-3, y.pos(p.high), x+3, y.pos(p.high), "wh")
			}
			body.WriteString(marker(s.slot, x, y.pos(p.y), 3.6))
			body.f(`<circle cx="%s" cy="%s" r="10" class="hit"/><title>%s</title></g>`, coord(x), coord(y.pos(p.y)), escLines(p.tip))
		}
		body.WriteString("</g>")
	}

	var w svgWriter
	w.open(c.id, c.title, c.desc, bottom+42)
	w.WriteString(body.String())
	return w.close()
}

// drawLine joins the points; what rests on too few samples is drawn faint.
func (c *lineChart) drawLine(w *svgWriter, s series, y scale, shift float64) {
	var firm, faint strings.Builder
	last := ""
	for _, p := range s.points {
		at := coord(c.x.pos(p.x)+shift) + " " + coord(y.pos(p.y))
		// A whisker's mark says nothing about the median that carries the line.
		if p.few && p.high == 0 {
			if faint.Len() == 0 && last != "" && !p.gap {
				faint.WriteString("M" + last)
			}
			join(&faint, at, p.gap)
		} else {
			join(&firm, at, p.gap)
		}
		last = at
	}
	if firm.Len() > 0 {
		w.f(`<path d="%s" class="ln"/>`, firm.String())
	}
	if faint.Len() > 0 {
		w.f(`<path d="%s" class="ln few"/>`, faint.String())
	}
}

func join(b *strings.Builder, at string, gap bool) {
	if b.Len() == 0 || gap {
		b.WriteString("M" + at)
		return
	}
	b.WriteString("L" + at)
}
