package html

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// breakable is text that breaks between the parameters of a stack before it breaks
// inside one.
func breakable(s string) template.HTML {
	return template.HTML(breaks.Replace(template.HTMLEscapeString(s)))
}

var breaks = strings.NewReplacer(", ", ", ", ",", ",<wbr/>", ")+", ")<wbr/>+")

// Sizes of a chart in its own units, which are CSS pixels: the style shows a drawing at
// its own size and at no less than 12/13 of it, so that its 13 units of text are the same
// on all charts of a page and never below 12 pixels.
const (
	svgWidth   = 358.0
	plotHeight = 210.0
	plotLeft   = 60.0
	plotRight  = 14.0
	legendLine = 18.0
	charWidth  = 7.45 // of one character of the text: DejaVu Sans, a wide face, takes 7.41 for stacks' names
	axisRoom   = 45   // characters of an axis title, which is bold: 7.7 units each in the same face
	keyRoom    = 42   // characters of a name in the key
)

// axis is a scale in chart units.
type axis struct {
	view.Scale
	from, to float64 // where lo and hi stand
}

// pos returns where v stands; what lies outside is drawn at the edge.
func (s axis) pos(v float64) float64 {
	lo, hi := s.Lo, s.Hi
	v = min(max(v, lo), hi)
	if s.Log {
		lo, hi, v = math.Log10(lo), math.Log10(hi), math.Log10(v)
	}
	if hi <= lo {
		return (s.from + s.to) / 2
	}
	return s.from + (v-lo)/(hi-lo)*(s.to-s.from)
}

// svgWriter builds one drawing. Every string that it is given is escaped.
type svgWriter struct{ strings.Builder }

func (w *svgWriter) f(format string, args ...any) { fmt.Fprintf(&w.Builder, format, args...) }

// text writes one label; class is ours.
func (w *svgWriter) text(x, y float64, anchor, class, s string) {
	w.f(`<text x="%s" y="%s" text-anchor="%s" class="%s">%s</text>`, coord(x), coord(y), anchor, class, esc(s))
}

func (w *svgWriter) line(x1, y1, x2, y2 float64, class string) {
	w.f(`<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>`, coord(x1), coord(y1), coord(x2), coord(y2), class)
}

// open begins the drawing; title and desc are what a screen reader says.
func (w *svgWriter) open(id, title, desc string, height float64, more ...attribute) {
	w.f(`<svg viewBox="0 0 %s %s" role="img" aria-labelledby="%s-t %s-d"`, coord(svgWidth), coord(height), id, id)
	for _, a := range more {
		w.f(` %s="%s"`, a.name, esc(a.value))
	}
	w.f(`><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`, id, esc(title), id, esc(desc))
}

// attribute is for the page's script: the axes of a drawing, and what its data are called.
type attribute struct{ name, value string }

func (w *svgWriter) close() template.HTML {
	w.WriteString("</svg>")
	return template.HTML(w.String())
}

// legend draws the key in as many lines as it needs and returns its height.
func (w *svgWriter) legend(entries []view.LegendEntry) float64 {
	x, y := 2.0, 13.0
	for i, e := range entries {
		name := view.Shorten(e.Name, keyRoom)
		width := 40 + charWidth*float64(len([]rune(name)))
		if i > 0 && x+width > svgWidth {
			x, y = 2, y+legendLine
		}
		w.f(`<g class="lg s%d%s" data-n="%d">`, e.Slot%view.Slots, thinClass(e.Thin), i)
		if e.Bar {
			w.f(`<rect x="%s" y="%s" width="22" height="10" class="bar"/>`, coord(x), coord(y-9))
		} else {
			w.f(`<path d="M%s %sh26" class="ln"/>%s`, coord(x), coord(y-4), marker(e.Slot, x+13, y-4, 3.6))
		}
		w.text(x+32, y, "start", "lt", name)
		w.WriteString("</g>")
		x += width + 8
	}
	return y + 6
}

func thinClass(thin bool) string {
	if thin {
		return " thin"
	}
	return ""
}

// marker draws the sign of a series, so that it is known without its colour.
func marker(slot int, x, y, r float64) string {
	c := coord
	var d string
	switch slot % view.Slots {
	case 0:
		return fmt.Sprintf(`<circle cx="%s" cy="%s" r="%s" class="mk"/>`, c(x), c(y), c(r))
	case 1:
		d = fmt.Sprintf("M%s %sh%sv%sh-%sz", c(x-r), c(y-r), c(2*r), c(2*r), c(2*r))
	case 2:
		d = fmt.Sprintf("M%s %sL%s %sH%sz", c(x), c(y-r*1.2), c(x+r*1.1), c(y+r), c(x-r*1.1))
	case 3:
		d = fmt.Sprintf("M%s %sL%s %sL%s %sL%s %sz", c(x), c(y-r*1.3), c(x+r*1.3), c(y), c(x), c(y+r*1.3),
			c(x-r*1.3), c(y))
	case 4:
		d = fmt.Sprintf("M%s %sL%s %sH%sz", c(x), c(y+r*1.2), c(x+r*1.1), c(y-r), c(x-r*1.1))
	case 5:
		d = fmt.Sprintf("M%s %sh%sv%sh-%sz", c(x-r*0.5), c(y-r*1.4), c(r), c(r*2.8), c(r))
	case 6:
		d = fmt.Sprintf("M%s %sh%sv%sh-%sz", c(x-r*1.4), c(y-r*0.5), c(r*2.8), c(r), c(r*2.8))
	default:
		d = fmt.Sprintf("M%s %sL%s %sV%sz", c(x-r), c(y), c(x+r), c(y-r*1.1), c(y+r*1.1))
	}
	return `<path d="` + d + `" class="mk"/>`
}

// coord prints a position with a tenth of a unit, the shortest way.
func coord(v float64) string {
	if !view.Finite(v) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// fine is coord with a hundredth, for lines that the script draws again on other axes.
func fine(v float64) string {
	if !view.Finite(v) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}

// exact prints a value of a chart's data, nothing for what is no number; a clock has no
// more than nine digits.
func exact(v float64) string {
	if !view.Finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 9, 64)
}

// esc makes a string of any origin safe inside an element or a quoted attribute.
func esc(s string) string { return template.HTMLEscapeString(view.Visible(s)) }

// escLines is esc for hover texts, whose own line breaks stay.
func escLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = esc(l)
	}
	return strings.Join(lines, "\n")
}
