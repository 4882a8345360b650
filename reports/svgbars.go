package reports

import (
	"html/template"
	"math"
)

// bar is one row of a bar chart or of a pair chart.
type bar struct {
	block       string // what this row and the following ones belong to
	label       string
	slot        int
	value       float64 // the bar, or the first of a pair
	other       float64 // the second of a pair
	thin        bool    // drawn hollow
	text, tip   string  // what stands at the end, and on hover
	few         bool
	firstOfKind bool // begins a new block of rows
}

const barRow = 22.0

// barChart is horizontal bars from zero: lengths may be compared.
type barChart struct {
	id, title, desc, xLabel string
	bars                    []bar
	legend                  []legendEntry
	unit                    func(float64) string
}

func (c *barChart) render() template.HTML {
	hi := 0.0
	for _, b := range c.bars {
		if finite(b.value) {
			hi = max(hi, b.value)
		}
	}
	ticks, top := linearTicks(hi, c.unit)
	var body svgWriter
	y := 4.0
	if len(c.legend) > 0 {
		y = body.legend(c.legend) + 4
	}
	x := scale{lo: 0, hi: top, from: 4, to: svgWidth - plotRight - 8}
	height := y
	for i, b := range c.bars {
		if b.firstOfKind || i == 0 {
			height += 18
		}
		height += barRow
	}
	for i, t := range ticks {
		body.line(x.pos(t.at), y+4, x.pos(t.at), height, "gr")
		if i == 0 {
			body.text(x.pos(t.at), height+16, "start", "tk", t.label)
		} else if x.pos(t.at) < svgWidth-8 {
			body.text(min(x.pos(t.at), svgWidth-charWidth*float64(len(t.label))/2), height+16, "middle", "tk", t.label)
		}
	}
	body.line(x.from, y+4, x.from, height, "ax")
	body.text(svgWidth/2, height+34, "middle", "al", c.xLabel)
	for i, b := range c.bars {
		if b.firstOfKind || i == 0 {
			body.text(x.from+4, y+14, "start", "lt", shorten(b.block, 60))
			y += 18
		}
		v := b.value
		if !finite(v) {
			v = 0
		}
		end := x.pos(v)
		body.f(`<g class="pt se s%d%s"><rect x="%s" y="%s" width="%s" height="14" class="bar"/>`, b.slot%slots, thinClass(b.thin), coord(x.from), coord(y+3), coord(max(end-x.from, 1)))
		// Inside the bar's end there is no contrast to rely on, so long bars
		// carry their figure on a plate of their own.
		if room := charWidth*float64(len([]rune(b.text))) + 8; end+room < svgWidth {
			body.text(end+6, y+14, "start", "vl", b.text)
		} else {
			body.f(`<rect x="%s" y="%s" width="%s" height="12" class="plate"/>`, coord(end-room-2), coord(y+4), coord(room))
			body.text(end-6, y+14, "end", "vl", b.text)
		}
		body.f(`<title>%s</title></g>`, escLines(b.tip))
		y += barRow
	}
	var w svgWriter
	w.open(c.id, c.title, c.desc, height+42)
	w.WriteString(body.String())
	return w.close()
}

// pairChart shows two values of one thing joined by a line, on a logarithmic
// axis: the length is the factor between them.
type pairChart struct {
	id, title, desc, xLabel string
	bars                    []bar
	legend                  []legendEntry
	unit                    func(float64) string
}

func (c *pairChart) render() template.HTML {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, b := range c.bars {
		for _, v := range []float64{b.value, b.other} {
			if v > 0 && finite(v) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	lo, hi = logSpan(lo, hi)
	var body svgWriter
	y := body.legend(c.legend) + 4
	top := y
	x := scale{log: true, lo: lo, hi: hi, from: 62, to: svgWidth - 74}
	height := y
	for i, b := range c.bars {
		if b.firstOfKind || i == 0 {
			height += 20
		}
		height += barRow
	}
	room := math.Inf(-1)
	for _, t := range logTicks(lo, hi, c.unit) {
		at := x.pos(t.at)
		body.line(at, top, at, height, "gr")
		if half := charWidth * float64(len([]rune(t.label))) / 2; at-half > room {
			body.text(at, height+16, "middle", "tk", t.label)
			room = at + half + 3
		}
	}
	body.text(svgWidth/2, height+34, "middle", "al", c.xLabel)
	for i, b := range c.bars {
		if b.firstOfKind || i == 0 {
			y += 20
		}
		if !(b.value > 0) || !(b.other > 0) || !finite(b.value) || !finite(b.other) {
			y += barRow
			continue
		}
		mid := y + barRow/2
		class := "pt se"
		if b.few {
			class += " few"
		}
		body.f(`<g class="%s s%d">`, class, b.slot%slots)
		body.text(54, mid+4, "end", "tk", b.label)
		from, to := x.pos(b.value), x.pos(b.other)
		body.line(from, mid, to, mid, "dumb")
		body.f(`<circle cx="%s" cy="%s" r="4.5" class="ring"/>`, coord(from), coord(mid))
		body.f(`<circle cx="%s" cy="%s" r="4.5" class="mk"/>`, coord(to), coord(mid))
		body.text(svgWidth-2, mid+4, "end", "vl", b.text)
		body.f(`<title>%s</title></g>`, escLines(b.tip))
		y += barRow
	}
	// Names of the blocks last, on top of the grid.
	y = top
	for i, b := range c.bars {
		if b.firstOfKind || i == 0 {
			body.text(4, y+14, "start", "lt", shorten(b.block, 60))
			y += 20
		}
		y += barRow
	}
	var w svgWriter
	w.open(c.id, c.title, c.desc, height+42)
	w.WriteString(body.String())
	return w.close()
}
