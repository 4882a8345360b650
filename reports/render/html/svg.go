package html

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// breakable is text that breaks between the parameters of a stack before it breaks inside one.
func breakable(s string) template.HTML {
	return template.HTML(breaks.Replace(template.HTMLEscapeString(s)))
}

var breaks = strings.NewReplacer(", ", ", ", ",", ",<wbr/>", ")+", ")<wbr/>+")

// Sizes of a chart in CSS pixels: the style shows it at no less than 12/13, so that 13 units of text are 12 pixels or
// more.
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

func (w *svgWriter) text(x, y float64, anchor, class, s string) {
	w.f(`<text x="%s" y="%s" text-anchor="%s" class="%s">%s</text>`, coord(x), coord(y), anchor, class, esc(s))
}

func (w *svgWriter) line(x1, y1, x2, y2 float64, class string) {
	w.f(`<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"/>`, coord(x1), coord(y1), coord(x2), coord(y2), class)
}

// drawing is what was written as the body of one; title and desc are what a screen reader says.
func (w *svgWriter) drawing(id, title, desc string, height float64, more ...attribute) template.HTML {
	var all svgWriter
	all.f(`<svg viewBox="0 0 %s %s" role="img" aria-labelledby="%s-t %s-d"`, coord(svgWidth), coord(height), id, id)
	for _, a := range more {
		all.f(` %s="%s"`, a.name, esc(a.value))
	}
	all.f(`><title id="%s-t">%s</title><desc id="%s-d">%s</desc>%s</svg>`, id, esc(title), id, esc(desc), w.String())
	return template.HTML(all.String())
}

// attribute is for the page's script: axes, units and headings.
type attribute struct{ name, value string }

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

func thinClass(thin bool) string { return view.When(thin, " thin") }

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
func coord(v float64) string { return rounded(v, 10) }

// fine is coord with a hundredth, for lines that the script draws again on other axes.
func fine(v float64) string { return rounded(v, 100) }

func rounded(v, parts float64) string {
	if !view.Finite(v) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*parts)/parts, 'f', -1, 64)
}

// exact prints a value of a chart's data, nothing for what is no number; a clock has no more than nine digits.
func exact(v float64) string {
	if !view.Finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', 9, 64)
}

// esc makes a string of any origin safe inside an element or a quoted attribute.
func esc(s string) string { return template.HTMLEscapeString(view.Visible(s)) }

func escLines(s string) string { return strings.Join(view.Each(strings.Split(s, "\n"), esc), "\n") }

// attribute is the axis as the script reads it: its kind, the values at its ends, and where they stand.
func (s axis) attribute() string {
	kind := "lin"
	if s.Log {
		kind = "log"
	}
	return strings.Join([]string{kind, exact(s.Lo), exact(s.Hi), coord(s.from), coord(s.to)}, " ")
}

// probe is a value whose label shows how a unit is written: it is nobody's round number.
const probe = 1500

// unitOf tells how an axis labels its values: "ns", "size", or "num", the factor and the suffix of the number.
func unitOf(label func(float64) string) string {
	switch s := label(probe); s {
	case view.NsLabel(probe):
		return "ns"
	case reports.SizeLabel(probe):
		return "size"
	default:
		number := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/%×µ ")
		factor := 1.0
		if v, err := strconv.ParseFloat(strings.NewReplacer("\u202f", "", "×", "", "+", "").Replace(number),
			64); err == nil && v > 0 {
			factor = v / probe
		}
		return "num|" + exact(factor) + "|" + s[len(number):]
	}
}

// unitWord is the unit of the numbers in a file of data, where the heading lacks it.
func unitWord(label func(float64) string) string {
	switch kind, _, _ := strings.Cut(unitOf(label), "|"); kind {
	case "ns":
		return " [ns]"
	case "size":
		return " [B]"
	}
	return ""
}

func dataHead(label string, number bool) string {
	label = strings.NewReplacer("|", "/", ", logarithmic", "").Replace(label)
	if number && label == "Message size" {
		label += " [B]"
	}
	return label
}
