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

// Sizes of a chart in its own units. The page shows it between 340 and 560 CSS
// pixels wide, so that 12 units of text stay readable on a phone.
const (
	svgWidth   = 420.0
	plotHeight = 220.0
	plotLeft   = 58.0
	plotRight  = 14.0
	legendLine = 17.0
	charWidth  = 6.9 // of one character of the 12 unit text: DejaVu Sans, a wide face, takes 6.84 for stacks' names
	axisRoom   = 57  // characters of an axis title, which is bold: 7.1 units each in the same face
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
func (w *svgWriter) open(id, title, desc string, height float64) {
	w.f(`<svg viewBox="0 0 %s %s" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		coord(svgWidth), coord(height), id, id, id, esc(title), id, esc(desc))
}

func (w *svgWriter) close() template.HTML {
	w.WriteString("</svg>")
	return template.HTML(w.String())
}

// legend draws the key in as many lines as it needs and returns its height.
func (w *svgWriter) legend(entries []view.LegendEntry) float64 {
	x, y := 2.0, 12.0
	for i, e := range entries {
		name := view.Shorten(e.Name, 56)
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
		d = fmt.Sprintf("M%s %sL%s %sL%s %sL%s %sz", c(x), c(y-r*1.3), c(x+r*1.3), c(y), c(x), c(y+r*1.3), c(x-r*1.3), c(y))
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
