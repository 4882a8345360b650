package html

import (
	"html/template"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

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
	var w svgWriter
	w.open(id, c.Title, c.Desc, y+side*float64(len(c.Names))+6)
	w.WriteString(body.String())
	return w.close()
}
