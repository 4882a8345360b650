package reports

import (
	"fmt"
	"html/template"
	"math"
	"strconv"
	"strings"
	"unicode"
)

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

// slots is the number of series that differ in colour, dash and marker; the
// next series begins again with the first.
const slots = 8

// tick is one labelled position of an axis, in data units.
type tick struct {
	at    float64
	label string
}

// scale maps data to chart units.
type scale struct {
	log    bool
	lo, hi float64 // data
	from   float64 // chart unit of lo
	to     float64 // chart unit of hi
}

// pos returns where v stands; what lies outside is drawn at the edge.
func (s scale) pos(v float64) float64 {
	lo, hi := s.lo, s.hi
	v = min(max(v, lo), hi)
	if s.log {
		lo, hi, v = math.Log10(lo), math.Log10(hi), math.Log10(v)
	}
	if hi <= lo {
		return (s.from + s.to) / 2
	}
	return s.from + (v-lo)/(hi-lo)*(s.to-s.from)
}

// logSpan widens lo..hi to numbers of 1, 2 or 5 times a power of ten. Values
// that have no logarithm are the caller's to leave out.
func logSpan(lo, hi float64) (float64, float64) {
	if !(lo > 0) || !(hi >= lo) || !finite(hi) {
		return 1, 10
	}
	// A file may hold any number; an axis of hundreds of decades shows none.
	lo = min(max(lo, axisMin), axisMax)
	return stepDown(lo), stepUp(min(max(hi, lo), axisMax))
}

// axisMin and axisMax bound what an axis shows, in ns, MiB/s and the like.
const axisMin, axisMax = 1e-6, 1e18

func stepDown(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{5, 2} {
		if m*p <= v*0.98 {
			return m * p
		}
	}
	if p > v*0.98 {
		return p / 2
	}
	return p
}

func stepUp(v float64) float64 {
	p := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5, 10} {
		if m*p >= v*1.02 {
			return m * p
		}
	}
	return 20 * p
}

// logTicks labels the decades, and 2 and 5 between them where there is room.
func logTicks(lo, hi float64, label func(float64) string) []tick {
	decades := math.Log10(hi / lo)
	steps := []float64{1}
	switch {
	case decades < 1.7:
		steps = []float64{1, 2, 5}
	case decades < 3.2:
		steps = []float64{1, 3}
	}
	every := 1
	if decades > 7 {
		every = 2
	}
	var ts []tick
	for e := int(math.Floor(math.Log10(lo) + 1e-9)); e <= int(math.Ceil(math.Log10(hi))); e++ {
		for _, m := range steps {
			v := m * math.Pow(10, float64(e))
			if v < lo*0.999 || v > hi*1.001 || e%every != 0 {
				continue
			}
			ts = append(ts, tick{v, label(v)})
		}
	}
	return ts
}

// linearTicks gives about five round steps from zero to at least hi.
func linearTicks(hi float64, label func(float64) string) (ts []tick, top float64) {
	if !(hi > axisMin) || !(hi < axisMax) {
		hi = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(hi/4)))
	for _, m := range []float64{1, 2, 5, 10} {
		if hi/(m*step) <= 4 {
			step *= m
			break
		}
	}
	n := int(math.Ceil(hi/step - 1e-9))
	for i := 0; i <= n; i++ {
		ts = append(ts, tick{float64(i) * step, label(float64(i) * step)})
	}
	return ts, float64(n) * step
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

// legendEntry is one series in the key of a chart.
type legendEntry struct {
	name string
	slot int
	thin bool // the unloaded arm of a pair
	bar  bool // a filled swatch instead of a line
}

// legend draws the key in as many lines as it needs and returns its height.
func (w *svgWriter) legend(entries []legendEntry) float64 {
	x, y := 2.0, 12.0
	for i, e := range entries {
		name := shorten(e.name, 56)
		width := 40 + charWidth*float64(len([]rune(name)))
		if i > 0 && x+width > svgWidth {
			x, y = 2, y+legendLine
		}
		w.f(`<g class="lg s%d%s" data-n="%d">`, e.slot%slots, thinClass(e.thin), i)
		if e.bar {
			w.f(`<rect x="%s" y="%s" width="22" height="10" class="bar"/>`, coord(x), coord(y-9))
		} else {
			w.f(`<path d="M%s %sh26" class="ln"/>%s`, coord(x), coord(y-4), marker(e.slot, x+13, y-4, 3.6))
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
	switch slot % slots {
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
	if !finite(v) {
		return "0"
	}
	return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64)
}

// esc makes a string of any origin safe inside an element or a quoted attribute.
func esc(s string) string { return template.HTMLEscapeString(visible(s)) }

// escLines is esc for hover texts, whose own line breaks stay.
func escLines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = esc(l)
	}
	return strings.Join(lines, "\n")
}

// visible replaces control characters and drops those that turn the direction
// of the text around them: a peer's name must not rewrite its neighbours.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) || r == '\ufeff' {
			return -1
		}
		return r
	}, printable(strings.ToValidUTF8(s, "?")))
}

// shorten cuts a long name in its middle, where stack names differ least.
func shorten(s string, limit int) string {
	r := []rune(visible(s))
	if len(r) <= limit {
		return string(r)
	}
	half := (limit - 1) / 2
	return string(r[:half]) + "…" + string(r[len(r)-half:])
}
