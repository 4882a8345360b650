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
	height := y + rowsHeight(c.Bars, 18)
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
		// Inside the bar's end there is no contrast to rely on.
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
	return body.drawing(id, c.Title, c.Desc, height+44,
		attribute{"data-head", "series|" + dataHead(c.XLabel, true) + unitWord(c.Unit)})
}

func rowsHeight(bars []view.Bar, name float64) (height float64) {
	for i, b := range bars {
		if height += barRow; b.FirstOfKind || i == 0 {
			height += name
		}
	}
	return height
}

// barName names a bar in a file of data: a hollow one is the first entry of the key.
func barName(c *view.BarChart, b view.Bar, block string) string {
	for _, e := range c.Legend {
		if e.Thin == b.Thin {
			return view.Join(", ", block, b.Label, e.Name)
		}
	}
	return view.Join(", ", block, b.Label)
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
	height := y + rowsHeight(c.Bars, 20)
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
		body.f(`<g class="pt se s%d" data-name="%s" data-v="%s">`, b.Slot%view.Slots, esc(view.Join(", ", block, b.Label)),
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
	first, second := "first", "second"
	if len(c.Legend) == 2 {
		first, second = c.Legend[0].Name, c.Legend[1].Name
	}
	return body.drawing(id, c.Title, c.Desc, height+44,
		attribute{"data-head", "series|" + first + unitWord(c.Unit) + "|" + second + unitWord(c.Unit)})
}

// Sizes of a heat map: its names take part of the width, and its cells what is left.
const (
	heatNames = 72.0
	heatMost  = 28.0 // a cell of few rows is no larger
	heatLine  = 11.0 // names of rows that are closer together are left out
)

func drawHeat(c *view.HeatMap, id string) template.HTML {
	side := min((svgWidth-heatNames-2)/float64(max(len(c.Names), 1)), heatMost)
	var body svgWriter
	y := 4.0
	x := 2.0
	for heat, name := range c.Key {
		if name == "" {
			continue
		}
		width := 22 + charWidth*float64(len([]rune(name)))
		if x > 2 && x+width > svgWidth {
			x, y = 2, y+legendLine
		}
		body.f(`<rect x="%s" y="%s" width="12" height="12" class="h%d"/>`, coord(x), coord(y), heat)
		body.text(x+16, y+11, "start", "lt", name)
		x += width + 6
	}
	y += legendLine + 6
	body.text(heatNames, y+8, "start", "tk", c.Down+" ↓  "+c.Right+" →")
	y += 14
	every := max(int(heatLine/side+0.999), 1)
	for i, name := range c.Names {
		if i%every == 0 {
			body.text(heatNames-4, y+(float64(i)+0.5)*side+4, "end", "tk", view.Shorten(name, 9))
		}
	}
	gap := 1.0
	if side < 8 {
		gap = 0
	}
	for _, cell := range c.Cells {
		body.f(`<rect x="%s" y="%s" width="%s" height="%s" class="h%d"><title>%s</title></rect>`,
			fine(heatNames+float64(cell.Column)*side), fine(y+float64(cell.Row)*side), fine(side-gap), fine(side-gap),
			cell.Heat, escLines(cell.Tip))
	}
	return body.drawing(id, c.Title, c.Desc, y+side*float64(len(c.Names))+6)
}
