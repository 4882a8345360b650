package reports

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/perf/benchmath"
)

// CompareSchemaID is the value of Comparison.Schema.
const CompareSchemaID = "rdmaperf/compare/v1"

// Comparison is two runs beside each other.
type Comparison struct {
	Schema string      `json:"schema"`
	Old    ComparedRun `json:"old"`
	New    ComparedRun `json:"new"`

	// Unlike says what makes the runs incomparable; empty when nothing does.
	Unlike []Difference `json:"unlike"`
	// Points are those of both runs, in the order of the old one.
	Points []ComparedPoint `json:"points"`

	OnlyOld []string `json:"only_old,omitempty"`
	OnlyNew []string `json:"only_new,omitempty"`
	// Missed has one line per threshold that is missed.
	Missed []string `json:"missed,omitempty"`
}

// ComparedRun names a run. Version and compiler may differ: that is what runs
// are compared for.
type ComparedRun struct {
	Started  time.Time `json:"started"`
	Version  string    `json:"version"`
	Go       string    `json:"go"`
	Hostname string    `json:"hostname,omitempty"`
	Error    string    `json:"error,omitempty"` // why it ended early
}

// Difference is one condition that is not the same in both runs. Point is empty
// for what concerns the whole run.
type Difference struct {
	Point string `json:"point,omitempty"`
	What  string `json:"what"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// String returns "cpu: old A, new B".
func (d Difference) String() string {
	what := d.What
	if d.Point != "" {
		what = d.Point + ": " + what
	}
	return printable(fmt.Sprintf("%s: old %s, new %s", what, orNone(d.Old), orNone(d.New)))
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
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
	// P is the probability of a difference at least as large if nothing had
	// changed: the Mann–Whitney test over repeats. Nil without repeats.
	P           *float64 `json:"p"`
	Significant bool     `json:"significant"` // P below 0.05
	Test        string   `json:"test"`        // the test in words, or why there is none

	quantity quantity
}

var quantityUnits = [...]string{quantityTime: "ns", quantityRate: "1/s", quantityBytes: "B/s", quantityCount: "1"}

// compared are the figures that a comparison always shows where they exist.
var compared = []string{"p50", "p99", "mean", "alone.p50", "alone.p99", "loaded.p50", "loaded.p99", "alone.bw", "loaded.bw", "from_client.bw", "from_server.bw", "slowest.bw", "jain", "iteration.mean", "iteration.p50", "iteration.p99", "overlap", "high.bw", "low.bw", "connect.p50", "full.p50", "rate", "bw"}

// ErrNothingInCommon says that no point is in both runs.
var ErrNothingInCommon = errors.New("no point is in both runs")

// Compare puts two runs beside each other, point by point. Several results for
// the same point are repeats. Absolute thresholds judge the new run, relative
// ones the change; both go by medians, whatever the test says, because too few
// repeats would otherwise let everything pass. A threshold that no point of both
// runs has a figure for is missed. The documents are only read.
func Compare(old, new *Document, thresholds []Threshold) (*Comparison, error) {
	c := &Comparison{Schema: CompareSchemaID, Old: comparedRun(old), New: comparedRun(new), Unlike: []Difference{}, Points: []ComparedPoint{}}
	c.environments("", &old.Environment, &new.Environment)
	switch a, b := old.ServerEnvironment, new.ServerEnvironment; {
	case a != nil && b != nil:
		c.environments("server ", a, b)
	case a != nil || b != nil:
		where := map[bool]string{true: "another machine", false: "this machine"}
		c.Unlike = append(c.Unlike, Difference{What: "server", Old: where[a != nil], New: where[b != nil]})
	}
	pairs := c.pair(old.Results, new.Results)
	if len(pairs) == 0 {
		return nil, ErrNothingInCommon
	}
	for _, p := range pairs {
		r := p.old[0]
		point := ComparedPoint{Point: p.name, Stack: r.Stack, Workload: r.Workload, Op: r.Op, SizeBytes: r.SizeBytes, Depth: r.Depth, QPs: r.QPs, Changes: []Change{}}
		names := slices.Clone(compared)
		for _, t := range thresholds {
			if !slices.Contains(names, t.metric.name) {
				names = append(names, t.metric.name)
			}
		}
		for _, name := range names {
			m, _ := findMetric(name)
			if ch, ok := change(m, p.old, p.new); ok {
				point.Changes = append(point.Changes, ch)
			}
		}
		c.Points = append(c.Points, point)
	}
	for _, t := range thresholds {
		if line := c.judge(t); line != "" {
			c.Missed = append(c.Missed, line)
		}
	}
	return c, nil
}

func comparedRun(d *Document) ComparedRun {
	r := ComparedRun{Started: d.Started, Version: d.Environment.Version, Go: d.Environment.Go, Hostname: d.Environment.Hostname}
	if d.Error != nil {
		r.Error = d.Error.Operation + ": " + d.Error.Message
	}
	return r
}

// environments notes what of a machine shapes figures and is not the same.
func (c *Comparison) environments(prefix string, a, b *Environment) {
	for _, f := range []struct {
		what     string
		old, new any
	}{
		{"os", a.OS, b.OS}, {"architecture", a.Arch, b.Arch}, {"kernel", a.Kernel, b.Kernel}, {"cpu", a.CPU, b.CPU}, {"cpus", a.CPUs, b.CPUs},
		{"virtual machine", a.Hypervisor, b.Hypervisor}, {"governors", strings.Join(a.Governors, ","), strings.Join(b.Governors, ",")},
		{"numa nodes", a.NUMANodes, b.NUMANodes}, {"clocksource", a.Clock, b.Clock}, {"gomaxprocs", a.GOMAXPROCS, b.GOMAXPROCS}, {"gogc", a.GOGC, b.GOGC},
	} {
		if f.old != f.new {
			c.Unlike = append(c.Unlike, Difference{What: prefix + f.what, Old: fmt.Sprint(f.old), New: fmt.Sprint(f.new)})
		}
	}
}

// fact is one named condition of a result.
type fact struct{ what, value string }

// identityParameters are options that make another point of a result;
// conditionParameters are those that make the same point incomparable.
var (
	identityParameters  = []string{"bidirectional", "run"} // run: of a scenario
	conditionParameters = []string{"arrival", "target", "completion", "recv_depth", "read_depth", "inline_bytes", "completion_every", "slots"}
	trainIdentity       = []string{"model", "arm", "compute_ratio", "tensor_bytes", "parameters", "tensors"}
	starvationIdentity  = []string{"high_load_percent", "high_priority"}
	trainCondition      = []string{"levels"}
	rpcIdentity         = []string{"call", "response_bytes"}
	kvIdentity          = []string{"mix", "requests", "records", "fields", "field_bytes", "max_scan", "store", "fsync"}
	rpcCondition        = []string{"verify", "codec"}
	holIdentity         = []string{"arm", "bulk_size_bytes", "bulk_depth", "probe_size_bytes", "probe_interval_ns", "app_slice_bytes", "app_window"}
)

// identity says which point a result is.
func identity(r *Result) []fact {
	facts := []fact{
		{"stack", r.Stack}, {"workload", r.Workload}, {"op", r.Op}, {"size", FormatSize(r.SizeBytes)},
		{"depth", strconv.Itoa(r.Depth)}, {"qps", strconv.Itoa(r.QPs)},
	}
	facts = append(facts, fact{"rate", offered(r)}, fact{"arrivals", r.Arrivals})
	facts = append(facts, parameters("", r.Parameters, identityParameters)...)
	if r.ParamServer != nil {
		facts = append(facts, parameters("", fields(r.ParamServer), trainIdentity)...)
	}
	if r.Starvation != nil {
		facts = append(facts, parameters("", fields(r.Starvation), starvationIdentity)...)
	}
	if r.RPC != nil {
		facts = append(facts, parameters("", fields(r.RPC), rpcIdentity)...)
	}
	if r.KV != nil {
		facts = append(facts, parameters("", fields(r.KV), kvIdentity)...)
	}
	if r.HOL != nil {
		// By name, so that a head-of-line measurement may get more conditions.
		facts = append(facts, parameters("", fields(r.HOL), holIdentity)...)
	}
	return facts
}

// fields are the values of an object by their names in a document.
func fields(object any) map[string]any {
	var all map[string]any
	if b, err := json.Marshal(object); err != nil || json.Unmarshal(b, &all) != nil {
		return nil
	}
	return all
}

// conditions says how a point was measured.
func conditions(r *Result) []fact {
	var train []fact
	if r.ParamServer != nil {
		train = parameters("", fields(r.ParamServer), trainCondition)
	}
	if r.RPC != nil {
		train = parameters("parameter ", r.Parameters, rpcCondition)
	}
	return append(append(train, []fact{
		{"label", r.Label}, {"threads", strconv.Itoa(max(r.Threads, 1))}, {"polling", r.Polling}, {"round trip", r.RoundTrip},
		{"measured by", r.MeasuredBy}, {"verified", strconv.FormatBool(r.Verified)},
	}...), parameters("parameter ", r.Parameters, conditionParameters)...)
}

// parameters takes the named scalars; a missing one is empty.
func parameters(prefix string, all map[string]any, names []string) []fact {
	var facts []fact
	for _, name := range names {
		value := ""
		if v, ok := all[name]; ok && v != nil {
			// As JSON, so that a number means the same from memory and from a file.
			if b, err := json.Marshal(v); err == nil {
				value = strings.Trim(string(b), `"`)
			}
		}
		facts = append(facts, fact{prefix + name, value})
	}
	return facts
}

// samples are the results of one run for the same point and conditions.
type samples struct {
	name       string
	identity   string
	conditions []fact
	results    []*Result
	paired     bool
}

func collectSamples(results []Result) []*samples {
	var all []*samples
	index := map[string]*samples{}
	for i := range results {
		r := &results[i]
		if r.Operations == 0 {
			continue // it measured nothing
		}
		id, cond := identity(r), conditions(r)
		key := fmt.Sprint(id, cond)
		s := index[key]
		if s == nil {
			s = &samples{name: sampleName(r, id), identity: fmt.Sprint(id), conditions: cond}
			index[key] = s
			all = append(all, s)
		}
		s.results = append(s.results, r)
	}
	return all
}

// sampleName is short, but tells every two points of a run apart.
func sampleName(r *Result, id []fact) string {
	name := fmt.Sprintf("%s %s %s %s", r.Stack, r.Workload, r.Op, FormatSize(r.SizeBytes))
	if r.Depth > 1 {
		name += " depth " + strconv.Itoa(r.Depth)
	}
	if r.QPs > 1 {
		name += " " + plural(int64(r.QPs), "QP")
	}
	for _, f := range id[6:] {
		n, _ := strconv.ParseInt(f.value, 10, 64)
		switch {
		case f.value == "", f.what == "bulk_size_bytes" && n == r.SizeBytes:
		case r.ParamServer != nil && (f.what == "parameters" || f.what == "tensors"): // the model's name says it
		case f.what == "tensor_bytes":
			name += " tensor_bytes=" + f.value // a figure, of one parameter
		case f.what == "arm", f.what == "model":
			name += " " + f.value
		case f.what == "probe_interval_ns":
			name += " every " + time.Duration(n).String()
		case strings.HasSuffix(f.what, "_bytes"):
			name += " " + strings.TrimSuffix(f.what, "_bytes") + "=" + FormatSize(n)
		default:
			name += " " + f.what + "=" + f.value
		}
	}
	return printable(strings.Join(strings.Fields(name), " "))
}

type samplePair struct {
	name     string
	old, new []*Result
}

// pair finds the points of both runs: those measured in the same way first, then
// the rest of the same point, whose differences make the runs unlike.
func (c *Comparison) pair(old, new []Result) []samplePair {
	olds, news := collectSamples(old), collectSamples(new)
	partner := map[*samples]*samples{}
	find := func(alike func(a, b *samples) bool) {
		for _, a := range olds {
			if a.paired {
				continue
			}
			for _, b := range news {
				if !b.paired && a.identity == b.identity && alike(a, b) {
					a.paired, b.paired, partner[a] = true, true, b
					break
				}
			}
		}
	}
	find(func(a, b *samples) bool { return slices.Equal(a.conditions, b.conditions) })
	find(func(a, b *samples) bool { return true })
	var pairs []samplePair
	for _, a := range olds {
		b := partner[a]
		if b == nil {
			c.OnlyOld = append(c.OnlyOld, a.name)
			continue
		}
		for i, f := range a.conditions {
			if g := b.conditions[i]; f != g {
				c.Unlike = append(c.Unlike, Difference{Point: a.name, What: f.what, Old: f.value, New: g.value})
			}
		}
		pairs = append(pairs, samplePair{a.name, a.results, b.results})
	}
	for _, b := range news {
		if !b.paired {
			c.OnlyNew = append(c.OnlyNew, b.name)
		}
	}
	return pairs
}

// change compares one figure; false when a side does not have it.
func change(m metric, old, new []*Result) (Change, bool) {
	a, b := values(m, old), values(m, new)
	if len(a) == 0 || len(b) == 0 {
		return Change{}, false
	}
	sa := benchmath.NewSample(a, &benchmath.DefaultThresholds)
	sb := benchmath.NewSample(b, &benchmath.DefaultThresholds)
	ch := Change{
		Figure: m.name, Unit: quantityUnits[m.quantity], quantity: m.quantity, OldN: len(a), NewN: len(b),
		Old: benchmath.AssumeNothing.Summary(sa, 0.95).Center, New: benchmath.AssumeNothing.Summary(sb, 0.95).Center,
	}
	if p := percent(ch.Old, ch.New); finite(p) {
		ch.Percent = &p
	}
	switch {
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

func values(m metric, results []*Result) []float64 {
	var vs []float64
	for _, r := range results {
		if v, ok := m.of(r); ok && finite(v) {
			vs = append(vs, v)
		}
	}
	return vs
}

// percent is the change from old to new. From nothing to something is infinite.
func percent(old, new float64) float64 {
	switch {
	case old == new:
		return 0
	case old == 0:
		return math.Inf(1)
	}
	return (new - old) / old * 100
}

// judge holds all points against one threshold and returns the line about it,
// or nothing when it is kept.
func (c *Comparison) judge(t Threshold) string {
	var measured, missed int
	var worst Change
	var point string
	var worstValue float64
	for _, p := range c.Points {
		i := slices.IndexFunc(p.Changes, func(ch Change) bool { return ch.Figure == t.metric.name })
		if i < 0 {
			continue
		}
		measured++
		ch := p.Changes[i]
		v := ch.New
		if t.relative {
			v = percent(ch.Old, ch.New)
		}
		if t.missedBy(v) {
			if missed++; missed == 1 || t.worse(v, worstValue) {
				worst, worstValue, point = ch, v, p.Point
			}
		}
	}
	switch {
	case measured == 0:
		return fmt.Sprintf("threshold %s missed: no point of both runs has a %s", t.text, t.metric.name)
	case missed == 0:
		return ""
	}
	return fmt.Sprintf("threshold %s missed by %d of %s, worst %s: %s to %s (%s; %s)", t.text, missed, plural(int64(measured), "point"), point,
		formatQuantity(worst.quantity, worst.Old), formatQuantity(worst.quantity, worst.New), formatPercent(worst.Percent), worst.Test)
}

func formatPercent(p *float64) string {
	if p == nil {
		return "from zero"
	}
	return fmt.Sprintf("%+.2f%%", *p)
}
