package html

import (
	"html/template"
	"math"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

const barRow = 24.0

func drawBars(c *view.BarChart, id string) template.HTML {
	hi := 0.0
	for _, b := range c.Bars {
		if view.Finite(b.Value) {
			hi = max(hi, b.Value)
		}
	}
	ticks, top := view.LinearTicks(hi, c.Unit)
	var body svgWriter
	y := 4.0
	if len(c.Legend) > 0 {
		y = body.legend(c.Legend) + 4
	}
	x := axis{view.Scale{Lo: 0, Hi: top}, 4, svgWidth - plotRight - 8}
	height := y
	for i, b := range c.Bars {
		if b.FirstOfKind || i == 0 {
			height += 18
		}
		height += barRow
	}
	for i, t := range ticks {
		body.line(x.pos(t.At), y+4, x.pos(t.At), height, "gr")
		if i == 0 {
			body.text(x.pos(t.At), height+17, "start", "tk", t.Label)
		} else if x.pos(t.At) < svgWidth-8 {
			body.text(min(x.pos(t.At), svgWidth-charWidth*float64(len(t.Label))/2), height+17, "middle", "tk", t.Label)
		}
	}
	body.line(x.from, y+4, x.from, height, "ax")
	body.text(svgWidth/2, height+36, "middle", "al", view.Shorten(c.XLabel, axisRoom))
	block := ""
	for i, b := range c.Bars {
		if b.FirstOfKind || i == 0 {
			body.text(x.from+4, y+14, "start", "lt", view.Shorten(b.Block, keyRoom+4))
			y, block = y+18, b.Block
		}
		v := b.Value
		if !view.Finite(v) {
			v = 0
		}
		end := x.pos(v)
		body.f(`<g class="pt se s%d%s" data-name="%s" data-v="%s"><rect x="%s" y="%s" width="%s" height="14" class="bar"/>`,
			b.Slot%view.Slots, thinClass(b.Thin), esc(barName(c, b, block)), exact(b.Value), coord(x.from), coord(y+3),
			coord(max(end-x.from, 1)))
		// Inside the bar's end there is no contrast to rely on, so long bars
		// carry their figure on a plate of their own.
		if room := charWidth*float64(len([]rune(b.Text))) + 8; end+room < svgWidth {
			body.text(end+6, y+14, "start", "vl", b.Text)
		} else {
			body.f(`<rect x="%s" y="%s" width="%s" height="12" class="plate"/>`, coord(end-room-2), coord(y+4),
				coord(room))
			body.text(end-6, y+14, "end", "vl", b.Text)
		}
		body.f(`<title>%s</title></g>`, escLines(b.Tip))
		y += barRow
	}
	var w svgWriter
	w.open(id, c.Title, c.Desc, height+44,
		attribute{"data-head", "series|" + dataHead(c.XLabel, true) + unitWord(c.Unit)})
	w.WriteString(body.String())
	return w.close()
}

// barName names a bar in a file of data: a hollow one is the first entry of the key.
func barName(c *view.BarChart, b view.Bar, block string) string {
	for _, e := range c.Legend {
		if e.Thin == b.Thin {
			return dataName(block, b.Label, e.Name)
		}
	}
	return dataName(block, b.Label)
}

func drawPairs(c *view.PairChart, id string) template.HTML {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, b := range c.Bars {
		for _, v := range []float64{b.Value, b.Other} {
			if v > 0 && view.Finite(v) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	lo, hi = view.LogSpan(lo, hi)
	var body svgWriter
	y := body.legend(c.Legend) + 4
	top := y
	x := axis{view.Scale{Log: true, Lo: lo, Hi: hi}, 62, svgWidth - 74}
	height := y
	for i, b := range c.Bars {
		if b.FirstOfKind || i == 0 {
			height += 20
		}
		height += barRow
	}
	room := math.Inf(-1)
	for _, t := range view.LogTicks(lo, hi, c.Unit) {
		at := x.pos(t.At)
		body.line(at, top, at, height, "gr")
		if half := charWidth * float64(len([]rune(t.Label))) / 2; at-half > room {
			body.text(at, height+17, "middle", "tk", t.Label)
			room = at + half + 3
		}
	}
	body.text(svgWidth/2, height+36, "middle", "al", view.Shorten(c.XLabel, axisRoom))
	block := ""
	for i, b := range c.Bars {
		if b.FirstOfKind || i == 0 {
			y, block = y+20, b.Block
		}
		if !(b.Value > 0) || !(b.Other > 0) || !view.Finite(b.Value) || !view.Finite(b.Other) {
			y += barRow
			continue
		}
		mid := y + barRow/2
		body.f(`<g class="pt se s%d" data-name="%s" data-v="%s">`, b.Slot%view.Slots, esc(dataName(block, b.Label)),
			exact(b.Value)+","+exact(b.Other))
		body.text(54, mid+4, "end", "tk", b.Label)
		from, to := x.pos(b.Value), x.pos(b.Other)
		body.line(from, mid, to, mid, "dumb")
		body.f(`<circle cx="%s" cy="%s" r="4.5" class="ring"/>`, coord(from), coord(mid))
		body.f(`<circle cx="%s" cy="%s" r="4.5" class="mk"/>`, coord(to), coord(mid))
		body.text(svgWidth-2, mid+4, "end", "vl", b.Text)
		body.f(`<title>%s</title></g>`, escLines(b.Tip))
		y += barRow
	}
	// Names of the blocks last, on top of the grid.
	y = top
	for i, b := range c.Bars {
		if b.FirstOfKind || i == 0 {
			body.text(4, y+14, "start", "lt", view.Shorten(b.Block, keyRoom+4))
			y += 20
		}
		y += barRow
	}
	var w svgWriter
	first, second := "first", "second"
	if len(c.Legend) == 2 {
		first, second = c.Legend[0].Name, c.Legend[1].Name
	}
	w.open(id, c.Title, c.Desc, height+44, attribute{"data-head", "series|" + first + unitWord(c.Unit) + "|" + second +
		unitWord(c.Unit)})
	w.WriteString(body.String())
	return w.close()
}
