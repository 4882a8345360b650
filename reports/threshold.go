package reports

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// limitUnits maps the units of a limit to their size in the unit of the
// document. Gb is a gigabit as everywhere in this field.
var limitUnits = [...]map[string]float64{
	QuantityTime: {"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9},
	QuantityRate: {"": 1, "/s": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "k/s": 1e3, "K/s": 1e3, "M/s": 1e6,
		"G/s": 1e9},
	QuantityBytes: {
		"B/s": 1, "KB/s": 1e3, "kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9, "KiB/s": 1 << 10, "MiB/s": 1 << 20,
		"GiB/s": 1 << 30,
		"b/s":   1. / 8, "Kb/s": 1e3 / 8, "kb/s": 1e3 / 8, "Mb/s": 1e6 / 8, "Gb/s": 1e9 / 8,
	},
	QuantityCount: {"": 1},
	QuantityRatio: {"": 1, "x": 1},
	QuantityMemory: {"": 1, "B": 1, "KB": 1e3, "kB": 1e3, "MB": 1e6, "GB": 1e9, "K": 1 << 10, "M": 1 << 20,
		"G": 1 << 30, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30},
}

// unitHint names units in the words of an error.
var unitHint = [...]string{
	QuantityTime:   "ns, us, ms or s, such as 10us",
	QuantityRate:   "operations per second with k, M or G, such as 3M",
	QuantityBytes:  "MB/s, GB/s, MiB/s, GiB/s, Mb/s or Gb/s, such as 1GB/s",
	QuantityCount:  "a plain number, such as 0",
	QuantityRatio:  "a plain number, such as 0.9",
	QuantityMemory: "bytes with K, M or G, such as 64K",
}

// findMetric takes p99.9 and p999 for the same.
func findMetric(name string, known Workloads) (FigureDef, bool) {
	prefix, last := "", name
	if i := strings.LastIndex(name, ".p"); i >= 0 {
		prefix, last = name[:i+1], name[i+1:]
	}
	if whole, fraction, found := strings.Cut(last, "."); found && whole == "p99" && strings.Trim(fraction, "9") == "" &&
		fraction != "" {
		last = whole + fraction
	}
	for _, w := range append(Workloads{{}}, known...) {
		defs := w.Defs()
		if i := slices.IndexFunc(defs, func(m FigureDef) bool { return m.Name == prefix+last }); i >= 0 {
			return defs[i], true
		}
	}
	return FigureDef{}, false
}

// Threshold is a condition under which a run counts as failed.
type Threshold struct {
	text     string
	metric   FigureDef
	above    bool // fails above the limit, else below it
	relative bool
	limit    float64 // in the document's unit; relative: percent of the old value
	medians  bool    // relative: judged without the test
}

// ByMedians is the threshold judged by medians alone: a change beyond the limit misses
// it, whether or not the change could be chance.
func (t Threshold) ByMedians() Threshold {
	t.medians = true
	return t
}

// ParseThreshold reads METRIC>LIMIT or METRIC<LIMIT: the condition of failure.
//
// METRIC is the name of a figure, with p99.9 for p999. A LIMIT with a sign and %, such as +10%, is the change from the
// old run, which only a comparison has.
func ParseThreshold(s string, workloads Workloads) (Threshold, error) {
	fail := func(format string, args ...any) (Threshold, error) {
		return Threshold{}, fmt.Errorf("threshold %q: %s", s, fmt.Sprintf(format, args...))
	}
	i := strings.IndexAny(s, "<>")
	if i < 0 {
		return fail("want METRIC>LIMIT or METRIC<LIMIT, such as p99>10us")
	}
	name, limit := strings.TrimSpace(s[:i]), strings.TrimSpace(s[i+1:])
	m, known := findMetric(name, workloads)
	if !known {
		return fail("unknown metric %q: want p50, p90, p99, p99.9, p99.99, p99.999, min, max, mean, stddev, rate, bw "+
			"or errors", name)
	}
	t := Threshold{text: name + s[i:i+1] + limit, metric: m, above: s[i] == '>'}
	digits := len(limit) - len(strings.TrimLeft(limit, "+-0123456789."))
	number, unit := limit[:digits], limit[digits:]
	if number == "" {
		return fail("want a limit after %c: %s, or a change such as +10%%", s[i], unitHint[m.Quantity])
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || !view.Finite(v) {
		return fail("%q is no number", number)
	}
	signed := number[0] == '+' || number[0] == '-'
	if unit == "%" {
		if !signed {
			return fail("a change needs its sign: +%s%% or -%s%%", number, number)
		}
		if v < -100 {
			return fail("nothing falls by more than 100%%")
		}
		t.relative, t.limit = true, v
		return t, nil
	}
	if signed {
		return fail("only a change in %% has a sign")
	}
	factor, known := limitUnits[m.Quantity][unit]
	if !known {
		if unit == "" {
			return fail("%s needs a unit: %s", name, unitHint[m.Quantity])
		}
		return fail("unknown unit %q for %s: want %s", unit, name, unitHint[m.Quantity])
	}
	if t.limit = v * factor; !view.Finite(t.limit) {
		return fail("the limit is too large")
	}
	return t, nil
}

// String returns the threshold as it was written, without spaces.
func (t Threshold) String() string { return t.text }

// Relative tells whether the limit is a change from another run.
func (t Threshold) Relative() bool { return t.relative }

// missedBy tells whether the value fails the threshold. What is no number fails.
func (t Threshold) missedBy(v float64) bool {
	if t.above {
		return !(v <= t.limit)
	}
	return !(v >= t.limit)
}

// worse tells whether a is further beyond the limit than b.
func (t Threshold) worse(a, b float64) bool {
	return math.IsNaN(a) || t.above && a > b || !t.above && a < b
}

// ErrRelative says that a threshold needs two runs.
var ErrRelative = errors.New("a change in % needs an old run: use it with rdmaperf compare")

// CheckThresholds holds every result of the document against absolute
// thresholds and returns one line for each threshold that is missed, with the
// worst result. A threshold for whose metric there is no figure counts as
// missed, because nothing shows that it was kept. A relative threshold is an
// error.
func CheckThresholds(d *Document, thresholds []Threshold) ([]string, error) {
	var lines []string
	for _, t := range thresholds {
		if t.relative {
			return nil, fmt.Errorf("threshold %q: %w", t.text, ErrRelative)
		}
		var measured, missed int
		var worst *Result
		var worstValue float64
		for i := range d.Results {
			v, ok := d.Results[i].Figure(t.metric.Name)
			if !ok {
				continue
			}
			measured++
			if t.missedBy(v) {
				missed++
				if worst == nil || t.worse(v, worstValue) {
					worst, worstValue = &d.Results[i], v
				}
			}
		}
		switch {
		case measured == 0:
			lines = append(lines, fmt.Sprintf("threshold %s missed: no result has a %s", t.text, t.metric.Name))
		case missed > 0:
			lines = append(lines, fmt.Sprintf("threshold %s missed by %d of %s, worst %s: %s",
				t.text, missed, view.Plural(int64(measured), "result"), pointName(worst),
				FormatQuantity(t.metric.Quantity, worstValue)))
		}
	}
	return lines, nil
}

// pointName names a result in one line.
func pointName(r *Result) string {
	return view.Printable(strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", TransportOf(r), r.Workload, r.Op,
		FormatSize(r.SizeBytes))), " "))
}

// FormatQuantity prints a value with the unit that a reader expects.
func FormatQuantity(q Quantity, v float64) string {
	by := func(step float64, units ...string) string {
		i := 0
		for ; i < len(units)-1 && math.Abs(v) >= step; i++ {
			v /= step
		}
		return view.Number(v, 3) + units[i]
	}
	switch q {
	case QuantityTime:
		if math.Abs(v) >= 1000 {
			v /= 1000
			return by(1000, "us", "ms", "s")
		}
		return view.Number(v, 0) + "ns"
	case QuantityRate:
		return by(1000, "/s", "k/s", "M/s", "G/s")
	case QuantityBytes:
		return by(1024, "B/s", "KiB/s", "MiB/s")
	case QuantityMemory:
		return by(1024, "B", "KiB", "MiB")
	case QuantityRatio:
		return view.Number(v, 4)
	default:
		return view.Number(v, 0)
	}
}
