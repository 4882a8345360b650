package view

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RoundTo drops what is below a thousandth: no clock here has picoseconds.
func RoundTo(v float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 3, 64), 64) // what was just written
	return rounded
}

// Each has a value for each of all.
func Each[T, V any](all []T, of func(T) V) []V {
	values := make([]V, len(all))
	for i, v := range all {
		values[i] = of(v)
	}
	return values
}

// Unique are the values of all, each once and in the order of first appearance.
func Unique[T any, V comparable](all []T, of func(T) V) (values []V) {
	seen := map[V]bool{}
	for _, v := range Each(all, of) {
		if !seen[v] {
			seen[v] = true
			values = append(values, v)
		}
	}
	return values
}

// Only is a list of those of all that are.
func Only[T any](all []T, is func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(all), func(v T) bool { return !is(v) })
}

// First is the first of all that is; false for none.
func First[T any](all []T, is func(T) bool) (first T, ok bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return first, false
}

// When is the text where it is due, else empty.
func When(due bool, text string) string {
	if due {
		return text
	}
	return ""
}

// Join is those of the parts that are not empty.
func Join(between string, parts ...string) string {
	return strings.Join(Only(parts, func(p string) bool { return p != "" }), between)
}

// Finite reports whether v can stand in JSON and in a table.
func Finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Capital raises the first letter of an ASCII word, or all of an abbreviation.
func Capital(s string) string {
	if s == "" {
		return s
	}
	if word, rest, _ := strings.Cut(s, " "); !strings.ContainsAny(word, "aeiouy") {
		return strings.TrimSpace(strings.ToUpper(word) + " " + rest)
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// PercentOf prints v as a share of base.
func PercentOf(v, base float64) string {
	if !(base > 0) || !Finite(v) {
		return "-"
	}
	return Digits3(100*v/base) + " %"
}

// NsLabel prints a time with three digits and its unit.
func NsLabel(ns float64) string {
	if !Finite(ns) {
		return "-"
	}
	for _, u := range []struct {
		below, by float64
		unit      string
	}{{999.5, 1, "ns"}, {999.5e3, 1e3, "µs"}, {999.5e6, 1e6, "ms"}} {
		if ns < u.below {
			return Digits3(ns/u.by) + " " + u.unit
		}
	}
	return Digits3(ns/1e9) + " s"
}

// Digits3 prints three significant digits and no exponent.
func Digits3(v float64) string {
	switch {
	case !Finite(v):
		return "-"
	case v == 0:
		return "0"
	case v < 0.01:
		return fmt.Sprintf("%.2g", v)
	case v < 0.9995:
		return TrimZeros(fmt.Sprintf("%.3f", v))
	case v < 9.995:
		return TrimZeros(fmt.Sprintf("%.2f", v))
	case v < 99.95:
		return TrimZeros(fmt.Sprintf("%.1f", v))
	}
	return Thousands(fmt.Sprintf("%.0f", v))
}

// TrimZeros drops what stands needlessly behind a decimal point.
func TrimZeros(s string) string { return strings.TrimSuffix(strings.TrimRight(s, "0"), ".") }

// Thousands parts a long whole number with narrow spaces.
func Thousands(s string) string {
	if len(s) < 5 {
		return s
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// BandwidthLabel is a bandwidth in MiB/s with three digits.
func BandwidthLabel(bytesPerSecond float64) string { return Digits3(bytesPerSecond/(1<<20)) + " MiB/s" }

// RateLabel is a rate of operations with three digits.
func RateLabel(perSecond float64) string {
	switch {
	case perSecond >= 1e6:
		return Digits3(perSecond/1e6) + " M op/s"
	case perSecond >= 1e4:
		return Digits3(perSecond/1e3) + " k op/s"
	}
	return Digits3(perSecond) + " op/s"
}

// Units are those of bandwidth in a text.
type Units struct{ Gbits bool }

// Bandwidth is one in these units.
func (u Units) Bandwidth(bytesPerSecond float64) string { return Bandwidth(bytesPerSecond, u.Gbits) }

// Name is the unit of bandwidth.
func (u Units) Name() string {
	if u.Gbits {
		return "Gb/s"
	}
	return "MiB/s"
}

// Ratio is v as a multiple of base, with an x.
func Ratio(v, base float64) string {
	if s := Number(v/base, 2); base != 0 && s != "-" {
		return s + "x"
	}
	return "-"
}

// Visible replaces control characters and drops those that turn the direction of the text around them.
func Visible(s string) string {
	return Printable(strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Bidi_Control, r) || r == '\ufeff' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "?")))
}

// Shorten cuts a long name in its middle, where stack names differ least.
func Shorten(s string, limit int) string {
	r := []rune(Visible(s))
	if len(r) <= limit {
		return string(r)
	}
	half := (limit - 1) / 2
	return string(r[:half]) + "…" + string(r[len(r)-half:])
}

// Printable replaces control characters, and those that turn the direction of what follows (Unicode UAX #9): names from
// a peer or a file must not move the cursor or begin a line.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError || r == '\ufeff' ||
			r == '\u2028' || r == '\u2029' {
			return '?'
		}
		return r
	}, s)
}

// Bandwidth is one in Gb/s or MiB/s, without its unit.
func Bandwidth(bytesPerSecond float64, gbits bool) string {
	if gbits {
		return Number(bytesPerSecond*8/1e9, 2)
	}
	return Number(bytesPerSecond/(1<<20), 2)
}

// Usec is a time in microseconds, of nanoseconds.
func Usec(ns float64) string { return Number(ns/1000, 2) }

// Number prints v, or a dash for what is no number.
func Number(v float64, decimals int) string {
	if !Finite(v) {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// Plural is a number of things.
func Plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Integer(n) + " " + what + "s"
}

// Integer is a whole number.
func Integer(n int64) string { return strconv.FormatInt(n, 10) }

// RateText is a rate without needless digits.
func RateText(perSecond float64) string { return strconv.FormatFloat(perSecond, 'f', -1, 64) }

// Folded breaks a name into lines of at most width, behind a comma or before a plus.
func Folded(name string, width int) (lines []string) {
	from, last := 0, 0
	for i, r := range name {
		cut := i
		if r == ',' {
			cut++
		} else if r != '+' {
			continue
		}
		if utf8.RuneCountInString(name[from:cut]) > width && last > from {
			lines, from = append(lines, name[from:last]), last
		}
		last = cut
	}
	if utf8.RuneCountInString(name[from:]) > width && last > from {
		lines, from = append(lines, name[from:last]), last
	}
	return append(lines, name[from:])
}

// Wrap breaks text into lines of at most width; a longer word is folded. Lines after the first begin with indent.
func Wrap(text string, width int, indent string) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for i, part := range Folded(word, width-utf8.RuneCountInString(indent)) {
			switch {
			case line == "":
				line = part
			case i > 0 || utf8.RuneCountInString(line)+1+utf8.RuneCountInString(part) > width:
				lines = append(lines, line)
				line = indent + part
			default:
				line += " " + part
			}
		}
	}
	return append(lines, line)
}
