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

// limitUnits maps the units of a limit to their size in the unit of the document. Gb is a gigabit.
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

var unitHint = [...]string{
	QuantityTime:   "ns, us, ms or s, such as 10us",
	QuantityRate:   "operations per second with k, M or G, such as 3M",
	QuantityBytes:  "MB/s, GB/s, MiB/s, GiB/s, Mb/s or Gb/s, such as 1GB/s",
	QuantityCount:  "a plain number, such as 0",
	QuantityRatio:  "a plain number, such as 0.9",
	QuantityMemory: "bytes with K, M or G, such as 64K",
}

var otherNames = map[string]string{"avg": "mean", "bandwidth": "bw"}

// intervalPrefix is of the worst interval of a window; intervalMetrics are what one has.
const intervalPrefix = "interval."

var intervalMetrics = []string{"p50", "p99", "max", "rate", "bw"}

// findMetric takes p99.9 for p999, and names of other tools, in letters of any case. .min and .max of intervals add
// nothing.
func findMetric(name string, known Workloads) (FigureDef, bool) {
	name = strings.ToLower(name)
	if rest, interval := strings.CutPrefix(name, intervalPrefix); interval {
		rest = strings.TrimSuffix(strings.TrimSuffix(rest, ".min"), ".max")
		def, ok := findMetric(rest, nil)
		def.Name = intervalPrefix + def.Name
		return def, ok && slices.Contains(intervalMetrics, strings.TrimPrefix(def.Name, intervalPrefix))
	}
	if prefix, last := SplitFigure(name); otherNames[last] != "" {
		name = prefix + otherNames[last]
	}
	prefix, last := "", name
	if i := strings.LastIndex(name, ".p"); i >= 0 {
		prefix, last = name[:i+1], name[i+1:]
	}
	if whole, fraction, found := strings.Cut(last, "."); found && whole == "p99" && strings.Trim(fraction, "9") == "" &&
		fraction != "" {
		last = whole + fraction
	}
	for _, w := range append(Workloads{{}}, known...) {
		if m, ok := view.First(w.Defs(), func(m FigureDef) bool { return strings.ToLower(m.Name) == prefix+last }); ok {
			return m, true
		}
	}
	return FigureDef{}, false
}

// Threshold is a condition under which a run counts as failed, or one without which it does.
type Threshold struct {
	name     string // of the metric, as it was written
	limits   string // the rest, as it was written: <5ms
	metric   FigureDef
	expected bool // fails where the condition does not hold
	more     bool // the condition is that the value is above the limit
	equal    bool // or equal to it
	relative bool
	limit    float64 // in the document's unit; relative: percent of the old value
	medians  bool    // relative: judged without the test
}

// ByMedians is the threshold judged by medians alone, whether or not the change could be chance.
func (t Threshold) ByMedians() Threshold {
	t.medians = true
	return t
}

// Expected is the threshold that fails where its condition does not hold.
func (t Threshold) Expected() Threshold {
	t.expected = true
	return t
}

// ParseThreshold reads METRIC>LIMIT, also with <, <= or >=: the condition of failure. METRIC is the name of a figure,
// with p99.9 for p999, or interval. and a figure of the worst interval. A LIMIT with a sign and %, such as +10%, is the
// change from the old run.
func ParseThreshold(s string, workloads Workloads) (Threshold, error) {
	fail := func(format string, args ...any) (Threshold, error) {
		return Threshold{}, fmt.Errorf("threshold %q: %s", s, fmt.Sprintf(format, args...))
	}
	i := strings.IndexAny(s, "<>")
	if i < 0 {
		return fail("want METRIC>LIMIT or METRIC<LIMIT, such as p99>10us")
	}
	name, limit := strings.TrimSpace(s[:i]), s[i+1:]
	limit, equal := strings.CutPrefix(limit, "=")
	limit = strings.TrimSpace(limit)
	m, known := findMetric(name, workloads)
	if !known {
		return fail("unknown metric %q: want p50, p90, p99, p99.9, p99.99, p99.999, min, max, mean, stddev, rate, bw "+
			"or errors", name)
	}
	t := Threshold{name: name, limits: s[i:i+1] + limit, metric: m, more: s[i] == '>', equal: equal}
	if equal {
		t.limits = s[i:i+2] + limit
	}
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
func (t Threshold) String() string { return t.name + t.limits }

// Metric is the name of its figure.
func (t Threshold) Metric() string { return t.metric.Name }

func (t Threshold) words() string {
	if t.expected {
		return "expected " + t.limits
	}
	return "limit: fail if " + t.limits
}

// OfIntervals tells whether it is held against the intervals of a window.
func (t Threshold) OfIntervals() bool { return strings.HasPrefix(t.metric.Name, intervalPrefix) }

// Relative tells whether the limit is a change from another run.
func (t Threshold) Relative() bool { return t.relative }

// missedBy tells whether the value fails the threshold. What is no number fails.
func (t Threshold) missedBy(v float64) bool {
	holds := t.equal && v == t.limit || t.more && v > t.limit || !t.more && v < t.limit
	return holds != t.expected || math.IsNaN(v)
}

func (t Threshold) of(r *Result) (float64, bool) {
	name, interval := strings.CutPrefix(t.metric.Name, intervalPrefix)
	if !interval {
		return r.Figure(name)
	}
	if r.Series == nil || r.Series.IntervalNs <= 0 {
		return 0, false
	}
	if name == "bw" && r.Throughput == nil {
		return 0, false
	}
	bytes, _ := r.PayloadBytes()
	bytes /= float64(max(r.Operations, 1))
	worst, ok := 0., false
	for _, p := range r.Series.Points {
		rate := float64(p.Operations) * 1e9 / float64(r.Series.IntervalNs)
		v := map[string]float64{"p50": p.P50, "p99": p.P99, "max": p.Max, "rate": rate, "bw": rate * bytes}[name]
		if p.Max == 0 && name != "rate" && name != "bw" {
			continue // nothing ended in it
		}
		if !ok || t.worse(v, worst) {
			worst, ok = v, true
		}
	}
	return worst, ok
}

// worse tells whether a is further beyond the limit than b.
func (t Threshold) worse(a, b float64) bool {
	return math.IsNaN(a) || t.more != t.expected && a > b || t.more == t.expected && a < b
}

// ErrRelative says that a threshold needs two runs.
var ErrRelative = errors.New("a change in % needs an old run: use it with rdmaperf compare")

// CheckThresholds returns one line for each absolute threshold that failed, with the worst result. One for whose metric
// there is no figure is missed. A relative one is an error.
func CheckThresholds(d *Document, thresholds []Threshold) ([]string, error) {
	var lines []string
	for _, t := range thresholds {
		if t.relative {
			return nil, fmt.Errorf("threshold %q: %w", t.String(), ErrRelative)
		}
		var measured, missed int
		var worst *Result
		var worstValue float64
		for _, r := range Pointers(d.Results) {
			v, ok := t.of(r)
			if !ok {
				continue
			}
			measured++
			if t.missedBy(v) {
				missed++
				if worst == nil || t.worse(v, worstValue) {
					worst, worstValue = r, v
				}
			}
		}
		switch {
		case measured == 0:
			lines = append(lines, fmt.Sprintf("failed: no result has a %s, %s", t.name, t.words()))
		case missed > 0:
			lines = append(lines, fmt.Sprintf("failed: %s %s, %s (%s, %d of %s)", t.name,
				FormatQuantity(t.metric.Quantity, worstValue), t.words(), pointName(worst), missed,
				view.Plural(int64(measured), "result")))
		}
	}
	return lines, nil
}

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
