package html

import (
	"cmp"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Lines draws a chart for a page whose style has its classes; id is unique there. Values that cannot stand on the y
// axis leave a gap.
func Lines(c *view.LineChart, id string) template.HTML {
	lo, hi := math.Inf(1), math.Inf(-1)
	lines := slices.Clone(c.Series)
	for i := range lines {
		s := &lines[i]
		kept := make([]view.Point, 0, len(s.Points))
		gap := false
		for _, p := range s.Points {
			if !(p.Y > 0 || c.Linear && p.Y == 0) || c.Linear && p.Y >= view.AxisMax || !view.Finite(p.Y) ||
				!view.Finite(p.X) {
				gap = true
				continue
			}
			p.Gap, gap = gap, false
			if !view.Finite(p.High) {
				p.High = 0
			}
			lo, hi = min(lo, p.Y), max(hi, p.Y, p.High)
			kept = append(kept, p)
		}
		s.Points = kept
	}
	y := axis{Scale: view.Scale{Log: !c.Linear}}
	var yTicks []view.Tick
	if c.Linear {
		yTicks, y.Hi = view.LinearTicks(hi, c.YUnit)
	} else {
		y.Lo, y.Hi = view.LogSpan(lo, hi)
		yTicks = view.LogTicks(y.Lo, y.Hi, c.YUnit)
	}

	var body svgWriter
	y.from, y.to = plotHeight, 0
	direct := labelled(lines, y)
	top := 24.0
	if !direct {
		entries := make([]view.LegendEntry, len(lines))
		for i, s := range lines {
			entries[i] = view.LegendEntry{Name: cmp.Or(s.Short, s.Name), Slot: s.Slot, Thin: s.Thin}
		}
		top += body.legend(entries)
	}
	bottom := top + plotHeight
	across := axis{c.X, plotLeft + 8, svgWidth - plotRight - 2}
	y.from, y.to = bottom, top

	body.text(2, top-11, "start", "al", view.Shorten(c.YLabel, axisRoom))
	body.f(`<g class="grid" data-left="%s" data-right="%s">`, coord(plotLeft), coord(svgWidth-plotRight+4))
	for _, t := range yTicks {
		body.line(plotLeft, y.pos(t.At), svgWidth-plotRight+4, y.pos(t.At), "gr")
		body.text(plotLeft-5, y.pos(t.At)+4, "end", "tk", t.Label)
	}
	body.WriteString("</g>")
	room := math.Inf(-1) // where the last tick label ended
	for _, t := range c.XTicks {
		x := across.pos(t.At)
		body.f(`<g class="tx" data-at="%s" data-px="%s">`, exact(t.At), coord(x))
		body.line(x, top, x, bottom, "gr")
		half := charWidth * float64(len([]rune(t.Label))) / 2
		if x-half > room {
			body.text(min(x, svgWidth-half), bottom+17, "middle", "tk", t.Label)
			room = x + half + 3
		}
		body.WriteString("</g>")
	}
	body.line(plotLeft, bottom, svgWidth-plotRight+4, bottom, "ax")
	middle := (plotLeft + svgWidth - plotRight) / 2
	if len([]rune(c.XLabel)) > axisRoom-10 { // wider than the plot
		middle = svgWidth / 2
	}
	body.text(middle, bottom+36, "middle", "al", view.Shorten(c.XLabel, axisRoom))

	for i, s := range lines {
		// Whiskers of two series at the same place are next to each other, and the series moves with its whiskers.
		shift := 0.0
		if whiskers(s) {
			shift = (float64(i) - float64(len(lines)-1)/2) * min(5, 20/float64(len(lines)))
		}
		body.f(`<g class="se s%d%s" data-n="%d" data-name="%s">`, s.Slot%view.Slots, thinClass(s.Thin), i, esc(s.Name))
		drawLine(&body, s, across, y, shift)
		for k, p := range s.Points {
			if p.Tip == "" {
				continue
			}
			x := across.pos(p.X) + shift
			class := "pt"
			if p.Few {
				class += " few"
			}
			body.f(`<g class="%s" data-v="%s">`, class, values(c, p))
			if p.High > p.Y {
				body.line(x, y.pos(p.Y), x, y.pos(p.High), "wh")
				body.line(x-3, y.pos(p.High), x+3, y.pos(p.High), "wh")
			}
			body.WriteString(marker(s.Slot, x, y.pos(p.Y), 3.6))
			if direct && k == lastShown(s) {
				name := cmp.Or(s.Short, s.Name)
				body.text(min(svgWidth-2, x+charWidth*float64(len([]rune(name)))/2), y.pos(p.Y)-labelRise, "end", "dl", name)
			}
			body.f(`<circle cx="%s" cy="%s" r="10" class="hit"/><title>%s</title></g>`, coord(x), coord(y.pos(p.Y)),
				escLines(p.Tip))
		}
		body.WriteString("</g>")
	}

	return body.drawing(id, c.Title, c.Desc, bottom+44, attribute{"data-x", across.attribute()},
		attribute{"data-y", y.attribute()}, attribute{"data-unit", unitOf(c.YUnit)},
		attribute{"data-head", "series|" + dataHead(c.XLabel, c.XText == nil) + "|" + dataHead(c.YLabel, true) +
			unitWord(c.YUnit) + tailHead(lines)})
}

// labelRise is how far above its last point the name of a line is, in chart units. Two names need labelApart.
const (
	labelRise  = 9.0
	labelApart = 18.0
)

// labelled tells that each of a few lines has room for its name at its last point, and the chart needs no key.
func labelled(lines []view.Series, y axis) bool {
	const few = 4
	if len(lines) < 2 || len(lines) > few {
		return false
	}
	var ends []float64
	for _, s := range lines {
		last := lastShown(s)
		if last < 0 || s.Points[last].High > s.Points[last].Y || len([]rune(cmp.Or(s.Short, s.Name))) > keyRoom/2 {
			return false
		}
		end := y.pos(s.Points[last].Y)
		if slices.ContainsFunc(ends, func(o float64) bool { return math.Abs(o-end) < labelApart }) {
			return false
		}
		ends = append(ends, end)
	}
	return true
}

// lastShown is the last point that is more than a bend of its line, -1 for none.
func lastShown(s view.Series) int {
	i := len(s.Points) - 1
	for i >= 0 && s.Points[i].Tip == "" {
		i--
	}
	return i
}

func values(c *view.LineChart, p view.Point) string {
	x := exact(p.X)
	if c.XText != nil {
		x = esc(strings.ReplaceAll(c.XText(p.X), ",", ";"))
	}
	v := x + "," + exact(p.Y)
	if p.High > p.Y {
		v += "," + exact(p.High)
	}
	return v
}

func whiskers(s view.Series) bool {
	return slices.ContainsFunc(s.Points, func(p view.Point) bool { return p.High > p.Y })
}

func tailHead(lines []view.Series) string {
	return view.When(slices.ContainsFunc(lines, whiskers), "|tail")
}

// drawLine joins the points; what rests on too few samples is drawn faint.
func drawLine(w *svgWriter, s view.Series, across, y axis, shift float64) {
	var firm, faint strings.Builder
	last := ""
	for _, p := range s.Points {
		at := fine(across.pos(p.X)+shift) + " " + fine(y.pos(p.Y))
		// A whisker's mark says nothing about the median that carries the line.
		if p.Few && p.High == 0 {
			if faint.Len() == 0 && last != "" && !p.Gap {
				faint.WriteString("M" + last)
			}
			join(&faint, at, p.Gap)
		} else {
			join(&firm, at, p.Gap)
		}
		last = at
	}
	if firm.Len() > 0 {
		w.f(`<path d="%s" class="ln" data-l="1"/>`, firm.String())
	}
	if faint.Len() > 0 {
		w.f(`<path d="%s" class="ln few" data-l="1"/>`, faint.String())
	}
}

func join(b *strings.Builder, at string, gap bool) {
	if b.Len() == 0 || gap {
		b.WriteString("M" + at)
		return
	}
	b.WriteString("L" + at)
}
