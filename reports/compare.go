package reports

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchmath"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// CompareSchemaID is the value of Comparison.Schema.
const CompareSchemaID = "rdmaperf/compare/v1"

// Comparison is two runs, point by point.
type Comparison struct {
	Schema string      `json:"schema"`
	Old    ComparedRun `json:"old"`
	New    ComparedRun `json:"new"`

	// Unlike says what makes the runs incomparable.
	Unlike []Difference `json:"unlike"`
	// Points are those of both runs, in the order of the old one.
	Points []ComparedPoint `json:"points"`

	// Interrupted are points of either run that an interrupt ended, which are not compared.
	Interrupted []string `json:"interrupted,omitempty"`

	OnlyOld []string `json:"only_old,omitempty"`
	OnlyNew []string `json:"only_new,omitempty"`
	// Missed has one line per threshold that is missed.
	Missed []string `json:"missed,omitempty"`
	// Undecided has one line per threshold that medians are beyond by what could be chance.
	Undecided []string `json:"undecided,omitempty"`
}

// ComparedRun names a run. Version and compiler may differ.
type ComparedRun struct {
	Started  time.Time `json:"started"`
	Version  string    `json:"version"`
	Go       string    `json:"go"`
	Hostname string    `json:"hostname,omitempty"`
	Error    string    `json:"error,omitempty"` // why it ended early

	// Disturbed says which of its points are not quiet; none is empty.
	Disturbed []string `json:"disturbed,omitempty"`
}

// Difference is one condition that differs. Point is empty for what concerns the whole run.
type Difference struct {
	Point string `json:"point,omitempty"`
	What  string `json:"what"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// String returns "cpu: old A, new B".
func (d Difference) String() string {
	what := view.When(d.Point != "", d.Point+": ") + d.What
	return view.Printable(fmt.Sprintf("%s: old %s, new %s", what, cmp.Or(d.Old, "none"), cmp.Or(d.New, "none")))
}

// ComparedPoint is one point of both runs.
type ComparedPoint struct {
	Point     string   `json:"point"` // in one line
	Stack     string   `json:"stack"`
	Workload  string   `json:"workload"`
	Op        string   `json:"op"`
	SizeBytes int64    `json:"size_bytes"`
	Depth     int      `json:"depth"`
	QPs       int      `json:"qps"`
	Changes   []Change `json:"changes"`

	// Taken is the part of a window that the machine took, the larger of both runs' medians.
	Taken float64 `json:"taken,omitempty"`
}

// Change is one figure of a point. Old and New are medians over the repeats.
type Change struct {
	Figure string  `json:"figure"` // as in thresholds: p50, rate, …
	Unit   string  `json:"unit"`
	Old    float64 `json:"old"`
	New    float64 `json:"new"`
	// Percent is the change from the old value; nil when that is zero.
	Percent *float64 `json:"percent"`
	OldN    int      `json:"old_n"`
	NewN    int      `json:"new_n"`
	// P is the probability of such a difference by chance: the Mann–Whitney test. Nil with one run on a side.
	P           *float64 `json:"p"`
	Significant bool     `json:"significant"` // P below 0.05, or of rounds of one run: no two overlap
	Test        string   `json:"test"`        // the test in words, or why there is none

	Quantity Quantity `json:"-"`
	Better   Better   `json:"-"`
}

// compared are the figures that a comparison always shows; those of the workload are between them.
var compared = [2][]string{{"p50", "p99", "mean"}, {"rate", "bw"}}

// ErrNothingInCommon says that no point is in both runs.
var ErrNothingInCommon = errors.New("no point is in both runs")

// Compare puts two runs side by side, point by point; several results for a point are repeats. Absolute thresholds
// judge the medians of the new run. Relative ones are missed by a change that is beyond the limit and significant, and
// undecided by one beyond and not significant, unless [Threshold.ByMedians]. One without a figure is missed. The
// documents are only read.
func Compare(old, new *Document, thresholds []Threshold) (*Comparison, error) {
	c := &Comparison{Schema: CompareSchemaID, Old: comparedRun(old), New: comparedRun(new), Unlike: []Difference{},
		Points: []ComparedPoint{}}
	c.environments("", &old.Environment, &new.Environment)
	switch a, b := old.ServerEnvironment, new.ServerEnvironment; {
	case a != nil && b != nil:
		c.environments("server ", a, b)
	case a != nil || b != nil:
		where := map[bool]string{true: "another machine", false: "this machine"}
		c.Unlike = append(c.Unlike, Difference{What: "server", Old: where[a != nil], New: where[b != nil]})
	}
	for i, d := range []*Document{old, new} {
		for _, r := range Pointers(d.Results) {
			if r.Interrupted {
				c.Interrupted = append(c.Interrupted, []string{"old: ", "new: "}[i]+sampleName(r))
			}
		}
	}
	pairs := c.pair(old.Results, new.Results)
	if len(pairs) == 0 {
		return nil, ErrNothingInCommon
	}
	for _, p := range pairs {
		r, partners := p.results[0], p.partner.results
		point := ComparedPoint{Point: p.name, Stack: r.Stack, Workload: r.Workload, Op: r.Op, SizeBytes: r.SizeBytes,
			Depth: r.Depth, QPs: r.QPs, Changes: []Change{}, Taken: max(takenOf(p.results), takenOf(partners))}
		for _, name := range r.shownWith(compared, thresholds) {
			asked := slices.ContainsFunc(thresholds, func(t Threshold) bool { return t.metric.Name == name })
			if ch, ok := change(name, p.results, partners); ok && (asked || ch.Better != Neither) {
				point.Changes = append(point.Changes, ch)
			}
		}
		c.Points = append(c.Points, point)
	}
	for _, t := range thresholds {
		c.judge(t)
	}
	return c, nil
}

func takenOf(results []*Result) float64 {
	return MedianOf(results, func(r *Result) float64 { return r.Disturbance.Share() })
}

func comparedRun(d *Document) ComparedRun {
	r := ComparedRun{Started: d.Started, Version: d.Environment.Version, Go: d.Environment.Go,
		Hostname: d.Environment.Hostname, Disturbed: DisturbanceLines(d)}
	if d.Error != nil {
		r.Error = d.Error.Operation + ": " + d.Error.Message
	}
	return r
}

// samples are the results of one run for the same point and conditions.
type samples struct {
	name       string
	identity   string
	conditions []Dim
	results    []*Result
	partner    *samples // in the other run
}

func collectSamples(results []Result) (all []*samples) {
	for _, g := range GroupBy(Pointers(results), func(r *Result) (string, bool) {
		return fmt.Sprint(identity(r), conditions(r)), r.Operations > 0 && !r.Interrupted // it measured something, and all
	}) {
		r := g.Samples[0]
		all = append(all, &samples{name: sampleName(r), identity: fmt.Sprint(identity(r)), conditions: conditions(r),
			results: g.Samples})
	}
	return all
}

// sampleName is short, but tells every two points of a run apart.
func sampleName(r *Result) string {
	name := view.Join(" ", r.Stack, r.Workload, r.Op, FormatSize(r.SizeBytes),
		view.When(r.Depth > 1, "depth "+strconv.Itoa(r.Depth)), view.When(r.QPs > 1, view.Plural(int64(r.QPs), "QP")),
		DimsText(slices.DeleteFunc(identity(r)[6:], func(d Dim) bool { return d.Value == "" }), " "))
	return view.Printable(strings.Join(strings.Fields(name), " "))
}

// pair finds the points of both runs: those measured in the same way first, then the rest of the same point.
func (c *Comparison) pair(old, new []Result) (pairs []*samples) {
	olds, news := collectSamples(old), collectSamples(new)
	find := func(alike func(a, b *samples) bool) {
		for _, a := range olds {
			i := slices.IndexFunc(news, func(b *samples) bool {
				return a.partner == nil && b.partner == nil && a.identity == b.identity && alike(a, b)
			})
			if i >= 0 {
				a.partner, news[i].partner = news[i], a
			}
		}
	}
	find(func(a, b *samples) bool { return slices.Equal(a.conditions, b.conditions) })
	find(func(a, b *samples) bool { return true })
	for _, a := range olds {
		if a.partner == nil {
			c.OnlyOld = append(c.OnlyOld, a.name)
			continue
		}
		for i, f := range a.conditions {
			if g := a.partner.conditions[i]; f != g {
				c.Unlike = append(c.Unlike, Difference{Point: a.name, What: f.Name, Old: f.Value, New: g.Value})
			}
		}
		pairs = append(pairs, a)
	}
	for _, b := range news {
		if b.partner == nil {
			c.OnlyNew = append(c.OnlyNew, b.name)
		}
	}
	return pairs
}

func change(name string, old, new []*Result) (Change, bool) {
	m, a, b := Figure{}, values(name, old), values(name, new)
	if len(a) == 0 || len(b) == 0 {
		return Change{}, false
	}
	for _, r := range old {
		if f, ok := r.Find(name); ok {
			m = f
		}
	}
	sa := benchmath.NewSample(a, &benchmath.DefaultThresholds)
	sb := benchmath.NewSample(b, &benchmath.DefaultThresholds)
	ch := Change{
		Figure: name, Unit: m.Unit(), Quantity: m.Quantity, Better: m.Better, OldN: len(a), NewN: len(b),
		Old: benchmath.AssumeNothing.Summary(sa, 0.95).Center, New: benchmath.AssumeNothing.Summary(sb, 0.95).Center,
	}
	if p := percent(ch.Old, ch.New); view.Finite(p) {
		ch.Percent = &p
	}
	switch {
	case rounds(old) || rounds(new):
		n, words := min(len(a), len(b)), "rounds overlap"
		if n < testableRepeats {
			words = "too few rounds"
		} else if slices.Min(a) > slices.Max(b) || slices.Max(a) < slices.Min(b) {
			ch.Significant, words = true, "no rounds overlap"
		}
		ch.Test = fmt.Sprintf("%s, n=%d", words, n)
	case len(a) == 1 && len(b) == 1:
		ch.Test = "no test: one sample each"
	case len(a) == 1 || len(b) == 1:
		ch.Test = fmt.Sprintf("no test: %d and %d samples", len(a), len(b))
	default:
		t := benchmath.AssumeNothing.Compare(sa, sb)
		p := t.P
		ch.P, ch.Significant, ch.Test = &p, p < t.Alpha, t.String()
		for _, w := range t.Warnings {
			ch.Test += ", " + w.Error()
		}
	}
	return ch, true
}

// rounds tells several results of one run from those of several runs, of which [Join] makes one sample each. Ranks of
// two runs of 32 rounds differed in 60 of 100 cases where nothing changed, and all rounds parted in 2.
func rounds(results []*Result) bool { return len(results) > 1 && results[0].Repeat > 0 }

func values(name string, results []*Result) []float64 {
	var vs []float64
	for _, r := range results {
		if v, ok := r.Figure(name); ok && view.Finite(v) {
			vs = append(vs, v)
		}
	}
	return vs
}

// shownWith are the names of figures around those that the workload shows, and those of thresholds.
func (r *Result) shownWith(around [2][]string, thresholds []Threshold) []string {
	own := slices.DeleteFunc(slices.Clone(r.Shown), func(name string) bool { return slices.Contains(around[1], name) })
	all := slices.Concat(around[0], own, around[1])
	for _, t := range thresholds {
		all = append(all, t.metric.Name)
	}
	return view.Unique(all, func(name string) string { return name })
}

// percent is infinite from nothing to something.
func percent(old, new float64) float64 {
	switch {
	case old == new:
		return 0
	case old == 0:
		return math.Inf(1)
	}
	return (new - old) / old * 100
}

func (c *Comparison) environments(prefix string, a, b *Environment) {
	for _, f := range []struct {
		what     string
		old, new any
	}{
		{"os", a.OS, b.OS}, {"architecture", a.Arch, b.Arch}, {"kernel", a.Kernel, b.Kernel}, {"cpu", a.CPU, b.CPU},
		{"cpus", a.CPUs, b.CPUs}, {"virtual machine", a.Hypervisor, b.Hypervisor}, {"kept awake by", a.Awake, b.Awake},
		{"governors", strings.Join(a.Governors, ","), strings.Join(b.Governors, ",")},
		{"numa nodes", a.NUMANodes, b.NUMANodes}, {"clocksource", a.Clock, b.Clock},
		{"gomaxprocs", a.GOMAXPROCS, b.GOMAXPROCS}, {"gogc", a.GOGC, b.GOGC},
	} {
		if f.old != f.new {
			c.Unlike = append(c.Unlike, Difference{What: prefix + f.what, Old: fmt.Sprint(f.old),
				New: fmt.Sprint(f.new)})
		}
	}
}

// conditionParameters are options that make the same point incomparable.
var conditionParameters = []string{"arrival", "target", "completion", "recv_depth", "read_depth", "inline_bytes",
	"completion_every", "post_list", "slots", "codec"}

// identity says which point a result is; the first six say it of every result.
func identity(r *Result) []Dim {
	facts := []Dim{
		{Name: "stack", Value: r.Stack}, {Name: "workload", Value: r.Workload}, {Name: "op", Value: r.Op},
		{Name: "size", Value: FormatSize(r.SizeBytes)}, {Name: "depth", Value: strconv.Itoa(r.Depth)},
		{Name: "qps", Value: strconv.Itoa(r.QPs)}, {Name: "rate", Value: Offered(r)},
		{Name: "arrivals", Value: r.Arrivals},
	}
	for _, d := range r.PointDims() {
		name, value := d.Short()
		facts = append(facts, Dim{Name: name, Value: value})
	}
	return facts
}

func conditions(r *Result) []Dim {
	facts := []Dim{
		{Name: "label", Value: r.Label}, {Name: "threads", Value: strconv.Itoa(max(r.Threads, 1))},
		{Name: "polling", Value: r.Polling}, {Name: "round trip", Value: r.RoundTrip},
		{Name: "measured by", Value: r.MeasuredBy}, {Name: "loop", Value: loopOf(r)},
		{Name: "verified", Value: strconv.FormatBool(r.Verified)},
	}
	for _, name := range conditionParameters {
		value := "" // of a missing one
		if v, ok := r.Parameters[name]; ok && v != nil {
			// As JSON, so that a number means the same from memory and from a file.
			if b, err := json.Marshal(v); err == nil {
				value = strings.Trim(string(b), `"`)
			}
		}
		facts = append(facts, Dim{Name: "parameter " + name, Value: value})
	}
	return facts
}
