package html

import (
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// The page's script draws lines again on other axes and saves a chart's data. It reads
// axes, units and headings from attributes of the drawing.

// attribute is the axis as the script reads it: its kind, the values at its ends, and
// where they stand.
func (s axis) attribute() string {
	kind := "lin"
	if s.Log {
		kind = "log"
	}
	return strings.Join([]string{kind, exact(s.Lo), exact(s.Hi), coord(s.from), coord(s.to)}, " ")
}

// probe is a value whose label shows how a unit is written: it is nobody's round number.
const probe = 1500

// unitOf tells how an axis labels its values: "ns", "size", or "num", the factor and what
// stands behind the number.
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

// dataHead is the title of an axis as a heading of a file.
func dataHead(label string, number bool) string {
	label = strings.NewReplacer("|", "/", ", logarithmic", "").Replace(label)
	if number && label == "Message size" {
		label += " [B]"
	}
	return label
}

// dataName names a row of bars.
func dataName(parts ...string) string {
	var words []string
	for _, p := range parts {
		if p != "" {
			words = append(words, p)
		}
	}
	return strings.Join(words, ", ")
}
