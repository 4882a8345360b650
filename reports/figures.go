package reports

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Quantity is what a figure counts; it decides which units a limit may have.
type Quantity int

// The quantities, with the unit of their values.
const (
	QuantityTime   Quantity = iota // ns
	QuantityRate                   // operations per second
	QuantityBytes                  // bytes per second
	QuantityCount                  // 1
	QuantityRatio                  // 1
	QuantityMemory                 // bytes
)

var quantityUnits = [...]string{QuantityTime: "ns", QuantityRate: "1/s", QuantityBytes: "B/s", QuantityCount: "1",
	QuantityRatio: "1", QuantityMemory: "B"}

var quantityNames = [...]string{QuantityTime: "time", QuantityRate: "rate", QuantityBytes: "bytes",
	QuantityCount: "count",
	QuantityRatio: "ratio", QuantityMemory: "memory"}

// String is the quantity in one word.
func (q Quantity) String() string { return quantityNames[q] }

// quantityOf is the quantity of a unit in a document, time for an unknown one.
func quantityOf(unit string) Quantity { return Quantity(max(slices.Index(quantityUnits[:], unit), 0)) }

// Unit is that of values in a document.
func (q Quantity) Unit() string { return quantityUnits[q] }

// latencyRows are the figures of a distribution behind its percentiles.
var latencyRows = []struct {
	name, help string
	Quantity
	Better
	of func(l *Latency) float64
}{
	{"min", "least", QuantityTime, Less, func(l *Latency) float64 { return l.Min }},
	{"max", "most", QuantityTime, Less, func(l *Latency) float64 { return l.Max }},
	{"mean", "mean", QuantityTime, Less, func(l *Latency) float64 { return l.Mean }},
	{"stddev", "standard deviation", QuantityTime, Less, func(l *Latency) float64 { return l.StdDev }},
	{"samples", "number of samples", QuantityCount, Neither, func(l *Latency) float64 { return float64(l.Count) }},
}

// latencyFigures are those of one distribution, none without samples.
func latencyFigures(prefix string, l *Latency) (all []Figure) {
	if l == nil || l.Count == 0 {
		return nil
	}
	for _, p := range PercentileTable {
		all = append(all, Figure{prefix + p.name, QuantityTime, Less, *p.field(l)})
	}
	for _, row := range latencyRows {
		all = append(all, Figure{prefix + row.name, row.Quantity, row.Better, row.of(l)})
	}
	return all
}

// latencyDefs declare them.
func latencyDefs(prefix, help string) (all []FigureDef) {
	for _, p := range PercentileTable {
		all = append(all, FigureDef{prefix + p.name, QuantityTime, Less, help + ", percentile"})
	}
	for _, row := range latencyRows {
		all = append(all, FigureDef{prefix + row.name, row.Quantity, row.Better, help + ", " + row.help})
	}
	return all
}

// OfDistribution tells whether it is a figure of every distribution.
func (d FigureDef) OfDistribution() bool {
	_, ok := latencyFigure(d.Name[strings.LastIndexByte(d.Name, '.')+1:])
	return ok
}

// commonRows are the figures that any result may have beside its latencies; ok is false for one that has none.
var commonRows = []struct {
	FigureDef
	of func(r *Result) (v float64, ok bool)
}{
	{FigureDef{"rate", QuantityRate, More, "operations a second"},
		throughputOf(func(t *Throughput) float64 { return t.OperationsPerSecond })},
	{FigureDef{"bw", QuantityBytes, More, "payload a second"},
		throughputOf(func(t *Throughput) float64 { return t.BytesPerSecond })},
	{FigureDef{"peak.bw", QuantityBytes, More, "payload a second in the best part of the window"},
		func(r *Result) (float64, bool) {
			t := r.Throughput
			if t == nil || t.PeakOverNs == 0 {
				return 0, false
			}
			return t.PeakBytesPerSecond, true
		}},
	{FigureDef{"peak.over", QuantityTime, Neither, "length of such a part"}, func(r *Result) (float64, bool) {
		t := r.Throughput
		if t == nil || t.PeakOverNs == 0 {
			return 0, false
		}
		return float64(t.PeakOverNs), true
	}},
	{FigureDef{"operations", QuantityCount, Neither, "completed in the window"}, func(r *Result) (float64, bool) {
		return float64(r.Operations), true
	}},
	{FigureDef{"duration", QuantityTime, Neither, "of the window"}, func(r *Result) (float64, bool) {
		return float64(r.DurationNs), true
	}},
	{FigureDef{"errors", QuantityCount, Less, "failed operations"}, func(r *Result) (float64, bool) {
		return float64(r.Errors), true
	}},
	{FigureDef{"cpu.client", QuantityTime, Less, "processor time of the client in the window"},
		cpuOf(func(c *CPU) float64 { return c.ClientSeconds })},
	{FigureDef{"cpu.server", QuantityTime, Less, "processor time of the server in the window"},
		cpuOf(func(c *CPU) float64 { return c.ServerSeconds })},
	{FigureDef{"cpu.machine", QuantityTime, Less, "processor time of everything on the client's machine"},
		func(r *Result) (float64, bool) {
			if r.CPU == nil || r.CPU.MachineSeconds == 0 {
				return 0, false
			}
			return r.CPU.MachineSeconds * 1e9, true
		}},
	{FigureDef{"switches", QuantityCount, Less, "context switches of both sides in the window"},
		func(r *Result) (float64, bool) {
			if r.CPU == nil || r.CPU.ClientSwitches+r.CPU.ServerSwitches == 0 {
				return 0, false
			}
			return float64(r.CPU.ClientSwitches + r.CPU.ServerSwitches), true
		}},
	{FigureDef{"gc.client", QuantityCount, Less, "garbage collections of the client"},
		gcOf(func(g *GC) int64 { return g.ClientCollections })},
	{FigureDef{"gc.server", QuantityCount, Less, "garbage collections of the server"},
		gcOf(func(g *GC) int64 { return g.ServerCollections })},
	{FigureDef{"allocations.client", QuantityCount, Less, "heap allocations of the client"},
		gcOf(func(g *GC) int64 { return g.ClientAllocations })},
	{FigureDef{"allocations.server", QuantityCount, Less, "heap allocations of the server"},
		gcOf(func(g *GC) int64 { return g.ServerAllocations })},
	{FigureDef{"compared.numbers", QuantityCount, Neither, "messages of which the number was compared"},
		comparedOf(func(v *Verification) int64 { return v.Numbers })},
	{FigureDef{"compared.messages", QuantityCount, Neither, "messages compared byte by byte"},
		comparedOf(func(v *Verification) int64 { return v.Whole })},
	{FigureDef{"compared.bytes", QuantityMemory, Neither, "bytes compared"},
		comparedOf(func(v *Verification) int64 { return v.Bytes })},
	{FigureDef{"load.due", QuantityCount, Neither, "operations due in an open loop"},
		loadOf(func(o *OpenLoop) float64 { return float64(o.Due) })},
	{FigureDef{"load.sent", QuantityCount, Neither, "of these, sent"},
		loadOf(func(o *OpenLoop) float64 { return float64(o.Sent) })},
	{FigureDef{"load.completed", QuantityCount, Neither, "of these, completed"},
		loadOf(func(o *OpenLoop) float64 { return float64(o.Completed) })},
	{FigureDef{"load.late", QuantityCount, Less, "of these, sent after they were due"},
		loadOf(func(o *OpenLoop) float64 { return float64(o.Late) })},
	{FigureDef{"load.achieved", QuantityRate, More, "completed over the window"},
		loadOf(func(o *OpenLoop) float64 { return o.AchievedPerSecond })},
	{FigureDef{"load.saturated", QuantityCount, Less, "1 where the path did not keep up"},
		loadOf(func(o *OpenLoop) float64 { return o.saturation() })},
}

func throughputOf(of func(t *Throughput) float64) func(r *Result) (float64, bool) {
	return func(r *Result) (float64, bool) {
		if r.Throughput == nil {
			return 0, false
		}
		return of(r.Throughput), true
	}
}

func cpuOf(seconds func(c *CPU) float64) func(r *Result) (float64, bool) {
	return func(r *Result) (float64, bool) {
		if r.CPU == nil {
			return 0, false
		}
		return seconds(r.CPU) * 1e9, true
	}
}

func gcOf(of func(g *GC) int64) func(r *Result) (float64, bool) {
	return func(r *Result) (float64, bool) {
		if r.GC == nil {
			return 0, false
		}
		return float64(of(r.GC)), true
	}
}

func comparedOf(of func(v *Verification) int64) func(r *Result) (float64, bool) {
	return func(r *Result) (float64, bool) {
		if r.Verification == nil {
			return 0, false
		}
		return float64(of(r.Verification)), true
	}
}

func loadOf(of func(o *OpenLoop) float64) func(r *Result) (float64, bool) {
	return func(r *Result) (float64, bool) {
		if r.OpenLoop == nil {
			return 0, false
		}
		return of(r.OpenLoop), true
	}
}

// Figures are what was due, sent and completed, the rate that was achieved, and whether the loop was saturated; no
// numbers without a loop.
func (o *OpenLoop) Figures() []float64 {
	if o == nil {
		none := math.NaN()
		return []float64{none, none, none, none, none}
	}
	return []float64{float64(o.Due), float64(o.Sent), float64(o.Completed), o.AchievedPerSecond, o.saturation()}
}

func (o *OpenLoop) saturation() float64 {
	if o.Saturated {
		return 1
	}
	return 0
}

type commonLatency struct {
	prefix, help string
	of           func(r *Result) *Latency
}

// commonLatencies are the distributions that any result may have, by the prefix of their figures.
var commonLatencies = []commonLatency{
	{"", "latency", func(r *Result) *Latency { return r.Latency }},
	{"corrected.", "latency corrected for coordinated omission", func(r *Result) *Latency {
		return r.LatencyCorrected
	}},
	{"service.", "latency of an open loop without the wait for a late start", func(r *Result) *Latency {
		return r.LatencyService
	}},
}

// commonDefs are the figures that any result may have.
var commonDefs = func() (all []FigureDef) {
	for _, l := range commonLatencies {
		all = append(all, latencyDefs(l.prefix, l.help)...)
	}
	for _, row := range commonRows {
		all = append(all, row.FigureDef)
	}
	return all
}()

// CommonDefs are those figures, for documentation; the copy is the caller's.
func CommonDefs() []FigureDef { return slices.Clone(commonDefs) }

// AllFigures are those that the result has: of all results, then of its distributions, then its own.
func (r *Result) AllFigures() (all []Figure) {
	for _, l := range commonLatencies {
		all = append(all, latencyFigures(l.prefix, l.of(r))...)
	}
	for _, row := range commonRows {
		if v, ok := row.of(r); ok {
			all = append(all, Figure{row.Name, row.Quantity, row.Better, v})
		}
	}
	return append(all, r.OwnFigures()...)
}

// OwnFigures are those of the result's own distributions, then those of its workload.
func (r *Result) OwnFigures() (all []Figure) {
	for _, l := range r.Latencies {
		all = append(all, latencyFigures(l.Name+".", l.Latency)...)
	}
	return append(all, r.Figures...)
}

// Find is a figure of the result by its name; false for a result without.
func (r *Result) Find(name string) (Figure, bool) {
	all := r.AllFigures()
	if i := slices.IndexFunc(all, func(f Figure) bool { return f.Name == name }); i >= 0 {
		return all[i], true
	}
	return Figure{}, false
}

// Figure is the value of a figure; false for a result without.
func (r *Result) Figure(name string) (float64, bool) {
	f, ok := r.Find(name)
	return f.Value, ok
}

// LatencyOf is the distribution that a figure is of, with the figure's name in it; nil for any other figure.
func (r *Result) LatencyOf(figure string) (l *Latency, name string) {
	prefix, name := "", figure
	if i := strings.LastIndexByte(figure, '.'); i >= 0 {
		prefix, name = figure[:i+1], figure[i+1:]
	}
	if _, ok := latencyFigure(name); !ok {
		return nil, ""
	}
	for _, c := range commonLatencies {
		if c.prefix == prefix {
			return c.of(r), name
		}
	}
	return r.distribution(strings.TrimSuffix(prefix, ".")), name
}

// latencyFigure tells whether a distribution has a figure of that name, and whether it is a percentile.
func latencyFigure(name string) (percentile, ok bool) {
	for _, p := range PercentileTable {
		if p.name == name {
			return true, true
		}
	}
	return false, slices.ContainsFunc(latencyDefs("", ""), func(d FigureDef) bool { return d.Name == name })
}

// Mark is "few" for a percentile that rests on too few samples, "least" for a lower bound, else empty.
func (r *Result) Mark(figure string) string {
	switch l, name := r.LatencyOf(figure); {
	case l == nil:
	case l.IsBound(name):
		return "least"
	case slices.ContainsFunc(l.Percentiles(), func(p Percentile) bool { return p.Name == name && p.TooFew }):
		return "few"
	}
	return ""
}

// MedianFigure is the median of a figure over the repeats of a point; false where one does not have it, or where all
// together have too few samples for it. Each needs one sample above the percentile, as its own is a maximum without.
func MedianFigure(runs []*Result, name string) (float64, bool) {
	values := make([]float64, len(runs))
	var need, count int64
	for i, r := range runs {
		v, ok := r.Figure(name)
		if !ok {
			return 0, false
		}
		values[i] = v
		l, percentile := r.LatencyOf(name)
		k := slices.IndexFunc(PercentileTable, func(row percentileRow) bool { return row.name == percentile })
		if l == nil || k < 0 {
			continue
		}
		need = PercentileTable[k].need
		if count += l.Count; 10*l.Count < need {
			return 0, false
		}
	}
	return Median(values), len(runs) > 0 && count >= need
}

// PayloadBytes are those that the operations moved; false where the workload counts no payload, such as registrations.
// Operations may differ in size, so that it is their mean size times their number.
func (r *Result) PayloadBytes() (float64, bool) {
	switch t := r.Throughput; {
	case t != nil && t.OperationsPerSecond > 0:
		return math.Round(float64(r.Operations) * t.BytesPerSecond / t.OperationsPerSecond), true
	case t == nil && r.Latency != nil:
		return float64(r.Operations) * float64(r.SizeBytes), true
	}
	return 0, false
}

// DimsText is NAME=VALUE of each dimension.
func DimsText(dims []Dim, between string) string {
	var parts []string
	for _, d := range dims {
		parts = append(parts, d.Name+"="+d.Value)
	}
	return strings.Join(parts, between)
}

// defaultShown are the figures of results whose workload names none.
var defaultShown = []string{"p50", "p99", "mean", "bw", "rate"}

// ShownFigures are those of tables, comparisons and charts.
func (r *Result) ShownFigures() (shown []Figure) {
	all := r.AllFigures()
	for _, names := range [][]string{r.Shown, defaultShown} {
		for _, name := range names {
			if i := slices.IndexFunc(all, func(f Figure) bool { return f.Name == name }); i >= 0 {
				shown = append(shown, all[i])
			}
		}
		if len(shown) > 0 {
			break
		}
	}
	return shown
}

// distribution is one of the result's own, nil for none.
func (r *Result) distribution(name string) *Latency {
	for _, l := range r.Latencies {
		if l.Name == name {
			return l.Latency
		}
	}
	return nil
}

// Distributions are all that the result has, by their names; that of its latency is empty.
func (r *Result) Distributions() (all []NamedLatency) {
	for _, c := range commonLatencies {
		if l := c.of(r); l != nil {
			all = append(all, NamedLatency{Name: strings.TrimSuffix(c.prefix, "."), Latency: l})
		}
	}
	all = append(all, r.Latencies...)
	for i := range all {
		all[i].SizeBytes = cmp.Or(all[i].SizeBytes, r.SizeBytes)
	}
	return all
}

// FigureLabel is the name of a figure as a table's heading has it: "loaded p99", and without the unit that stands
// beside it.
func FigureLabel(name string) string {
	for _, unit := range []string{"_ns", "_bytes", ".ns"} {
		name = strings.TrimSuffix(name, unit)
	}
	return strings.NewReplacer(".", " ", "_", " ").Replace(name)
}

// QuantityLabel is a value with three digits and its unit.
func QuantityLabel(q Quantity, v float64) string {
	switch q {
	case QuantityTime:
		return view.NsLabel(v)
	case QuantityRate:
		return view.RateLabel(v)
	case QuantityBytes:
		return view.BandwidthLabel(v)
	case QuantityMemory:
		if !view.Finite(v) {
			return "-"
		}
		return FormatQuantity(q, v)
	case QuantityRatio:
		return view.Digits3(v)
	}
	return view.Number(v, -1)
}
