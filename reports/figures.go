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
	QuantityCount: "count", QuantityRatio: "ratio", QuantityMemory: "memory"}

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

func latencyDefs(prefix, help string) (all []FigureDef) {
	for _, p := range PercentileTable {
		all = append(all, FigureDef{prefix + p.name, QuantityTime, Less, help + ", percentile"})
	}
	for _, row := range latencyRows {
		all = append(all, FigureDef{prefix + row.name, row.Quantity, row.Better, help + ", " + row.help})
	}
	return all
}

var latencyNames = view.Each(latencyDefs("", ""), func(d FigureDef) string { return d.Name })

// OfDistribution tells whether it is a figure of every distribution.
func (d FigureDef) OfDistribution() bool {
	_, last := SplitFigure(d.Name)
	return slices.Contains(latencyNames, last)
}

// commonParts are the figures beside latencies that any result may have, by the part that has them.
var commonParts = []struct {
	defs []FigureDef
	of   func(r *Result) []float64
}{
	{[]FigureDef{
		{"rate", QuantityRate, More, "operations a second"},
		{"bw", QuantityBytes, More, "payload a second"},
	}, func(r *Result) []float64 {
		if r.Throughput == nil {
			return nil
		}
		return []float64{r.Throughput.OperationsPerSecond, r.Throughput.BytesPerSecond}
	}},
	{[]FigureDef{
		{"peak.bw", QuantityBytes, More, "payload a second in the best part of the window"},
		{"peak.over", QuantityTime, Neither, "length of such a part"},
	}, func(r *Result) []float64 {
		if r.Throughput == nil || r.Throughput.PeakOverNs == 0 {
			return nil
		}
		return []float64{r.Throughput.PeakBytesPerSecond, float64(r.Throughput.PeakOverNs)}
	}},
	{[]FigureDef{
		{"operations", QuantityCount, Neither, "completed in the window"},
		{"duration", QuantityTime, Neither, "of the window"},
		{"errors", QuantityCount, Less, "failed operations"},
	}, func(r *Result) []float64 {
		return []float64{float64(r.Operations), float64(r.DurationNs), float64(r.Errors)}
	}},
	{[]FigureDef{
		{"cpu.client", QuantityTime, Less, "processor time of the client in the window"},
		{"cpu.server", QuantityTime, Less, "processor time of the server in the window"},
	}, func(r *Result) []float64 {
		if r.CPU == nil {
			return nil
		}
		return []float64{r.CPU.ClientSeconds * 1e9, r.CPU.ServerSeconds * 1e9}
	}},
	{[]FigureDef{
		{"cpu.machine", QuantityTime, Less, "processor time of everything on the client's machine"},
	}, func(r *Result) []float64 {
		if r.CPU == nil || r.CPU.MachineSeconds == 0 {
			return nil
		}
		return []float64{r.CPU.MachineSeconds * 1e9}
	}},
	{[]FigureDef{
		{"switches", QuantityCount, Less, "context switches of both sides in the window"},
	}, func(r *Result) []float64 {
		if r.CPU == nil || r.CPU.ClientSwitches+r.CPU.ServerSwitches == 0 {
			return nil
		}
		return []float64{float64(r.CPU.ClientSwitches + r.CPU.ServerSwitches)}
	}},
	{[]FigureDef{
		{"gc.client", QuantityCount, Less, "garbage collections of the client"},
		{"gc.server", QuantityCount, Less, "garbage collections of the server"},
		{"allocations.client", QuantityCount, Less, "heap allocations of the client"},
		{"allocations.server", QuantityCount, Less, "heap allocations of the server"},
	}, func(r *Result) []float64 {
		if r.GC == nil {
			return nil
		}
		return []float64{float64(r.GC.ClientCollections), float64(r.GC.ServerCollections),
			float64(r.GC.ClientAllocations), float64(r.GC.ServerAllocations)}
	}},
	{[]FigureDef{
		{"compared.numbers", QuantityCount, Neither, "messages of which the number was compared"},
		{"compared.messages", QuantityCount, Neither, "messages compared byte by byte"},
		{"compared.bytes", QuantityMemory, Neither, "bytes compared"},
	}, func(r *Result) []float64 {
		if r.Verification == nil {
			return nil
		}
		return []float64{float64(r.Verification.Numbers), float64(r.Verification.Whole), float64(r.Verification.Bytes)}
	}},
	{[]FigureDef{
		{"load.due", QuantityCount, Neither, "operations due in an open loop"},
		{"load.sent", QuantityCount, Neither, "of these, sent"},
		{"load.completed", QuantityCount, Neither, "of these, completed"},
		{"load.late", QuantityCount, Less, "of these, sent after they were due"},
		{"load.achieved", QuantityRate, More, "completed over the window"},
		{"load.saturated", QuantityCount, Less, "1 where the path did not keep up"},
	}, func(r *Result) []float64 {
		if r.OpenLoop == nil {
			return nil
		}
		return slices.Insert(r.OpenLoop.Figures(), 3, float64(r.OpenLoop.Late))
	}},
}

// Figures are due, sent, completed, the rate achieved and whether it was saturated; no numbers without a loop.
func (o *OpenLoop) Figures() []float64 {
	if o == nil {
		return slices.Repeat([]float64{math.NaN()}, 5)
	}
	saturated := 0.
	if o.Saturated {
		saturated = 1
	}
	return []float64{float64(o.Due), float64(o.Sent), float64(o.Completed), o.AchievedPerSecond, saturated}
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

var commonDefs = func() (all []FigureDef) {
	for _, l := range commonLatencies {
		all = append(all, latencyDefs(l.prefix, l.help)...)
	}
	for _, part := range commonParts {
		all = append(all, part.defs...)
	}
	return all
}()

// CommonDefs are those figures, for documentation; the copy is the caller's.
func CommonDefs() []FigureDef { return slices.Clone(commonDefs) }

// AllFigures are those of all results, then of its distributions, then its own.
func (r *Result) AllFigures() (all []Figure) {
	for _, l := range commonLatencies {
		all = append(all, latencyFigures(l.prefix, l.of(r))...)
	}
	for _, part := range commonParts {
		for i, v := range part.of(r) {
			all = append(all, Figure{part.defs[i].Name, part.defs[i].Quantity, part.defs[i].Better, v})
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
	return view.First(r.AllFigures(), func(f Figure) bool { return f.Name == name })
}

// Figure is the value of a figure; false for a result without.
func (r *Result) Figure(name string) (float64, bool) {
	f, ok := r.Find(name)
	return f.Value, ok
}

// LatencyOf is the distribution that a figure is of, with the figure's name in it; nil for any other figure.
func (r *Result) LatencyOf(figure string) (l *Latency, name string) {
	prefix, name := SplitFigure(figure)
	if !slices.Contains(latencyNames, name) {
		return nil, ""
	}
	for _, c := range commonLatencies {
		if c.prefix == prefix {
			return c.of(r), name
		}
	}
	return r.distribution(strings.TrimSuffix(prefix, ".")), name
}

// SplitFigure parts the name of a figure behind its last dot: loaded. and p99.
func SplitFigure(name string) (prefix, last string) {
	i := strings.LastIndexByte(name, '.') + 1
	return name[:i], name[i:]
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

// MedianFigure is the median of a figure over the repeats; false where one lacks it or all have too few samples. Each
// needs one sample above the percentile, as its own is a maximum without.
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

// PayloadBytes are those that the operations moved; false where the workload counts no payload.
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
	return strings.Join(view.Each(dims, func(d Dim) string { return d.Name + "=" + d.Value }), between)
}

var defaultShown = []string{"p50", "p99", "mean", "bw", "rate"}

// ShownFigures are those of tables, comparisons and charts.
func (r *Result) ShownFigures() (shown []Figure) {
	all := r.AllFigures()
	for _, names := range [][]string{r.Shown, defaultShown} {
		for _, name := range names {
			if f, ok := view.First(all, func(f Figure) bool { return f.Name == name }); ok {
				shown = append(shown, f)
			}
		}
		if len(shown) > 0 {
			break
		}
	}
	return shown
}

// Streamed tells whether the throughput says something of its own: the rate of a ping-pong does not.
func (r *Result) Streamed() bool {
	shown := r.ShownFigures()
	return r.Throughput != nil && (HasFigure(shown, "bw") || HasFigure(shown, "rate"))
}

func (r *Result) distribution(name string) *Latency {
	l, _ := view.First(r.Latencies, func(l NamedLatency) bool { return l.Name == name })
	return l.Latency
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

// OncePerName has the first figure of each name.
func OncePerName(figures []Figure) []Figure {
	groups := GroupBy(figures, func(f Figure) (string, bool) { return f.Name, true })
	return view.Each(groups, func(g *GroupOf[string, Figure]) Figure { return g.Samples[0] })
}

// HasFigure tells whether one has the name.
func HasFigure(figures []Figure, name string) bool {
	return slices.ContainsFunc(figures, func(f Figure) bool { return f.Name == name })
}

// FigureLabel is the name of a figure in a heading, without its unit: "loaded p99".
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
