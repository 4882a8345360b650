package hol

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// HOL is probes beside one bulk stream. A probe's latency is its full round trip, from any intended start.
type HOL struct {
	Arm             string `json:"arm,omitempty"` // one of the variants
	BulkSizeBytes   int64  `json:"bulk_size_bytes"`
	ProbeSizeBytes  int64  `json:"probe_size_bytes"`
	ProbeIntervalNs int64  `json:"probe_interval_ns,omitempty"` // probes are due at it
	// one at a time: the least between two starts
	ProbeGapNs               int64           `json:"probe_gap_ns,omitempty"`
	Probes                   int64           `json:"probes_loaded,omitempty"` // beside the bulk
	ProbeAlone               reports.Latency `json:"probe_alone"`
	ProbeLoaded              reports.Latency `json:"probe_loaded"`
	BulkAloneBytesPerSecond  float64         `json:"bulk_alone_bytes_per_second"`
	BulkLoadedBytesPerSecond float64         `json:"bulk_loaded_bytes_per_second"`

	// AloneLoop and LoadedLoop count due, sent and answered probes; nil where a probe waits for the one before.
	AloneLoop  *reports.OpenLoop `json:"alone_loop,omitempty"`
	LoadedLoop *reports.OpenLoop `json:"loaded_loop,omitempty"`

	// Of AppSlicing: bytes of a slice, and how many the application keeps outstanding.
	AppSliceBytes int64 `json:"app_slice_bytes,omitempty"`
	AppWindow     int   `json:"app_window,omitempty"`
}

func (*HOL) Member(string) string { return "hol" }

// arm is that of a document from before there was a choice, too.
func (h *HOL) arm() string { return cmp.Or(h.Arm, SameQP) }

// Of is the detail of a head-of-line result, nil for any other.
func Of(r *reports.Result) *HOL { return reports.DetailOf[HOL](r) }

func (h *HOL) saturated() bool { return h.LoadedLoop != nil && h.LoadedLoop.Saturated }

var results = &reports.Workload{
	Name: Name, Title: "Head-of-line blocking",
	Intro: "Small probes, first alone, then under load of a bulk stream; a gain is how many times lower a latency is " +
		"than behind the bulk on the one queue pair of the bare stack.",
	Dims: []reports.DimDef{
		{Name: "arm", Help: "how probes and bulk share queue pairs"},
		{Name: "bulk_size_bytes", Unit: "B", Help: "a message of the bulk stream"},
		{Name: "probe_size_bytes", Unit: "B", Help: "a probe"},
		{Name: "probe_interval_ns", Unit: "ns", Help: "between the intended starts of two probes"},
		{Name: "probe_gap_ns", Unit: "ns", Help: "least time between two probes, one at a time"},
		{Name: "app_slice_bytes", Unit: "B", Help: "into which the application cuts the bulk"},
		{Name: "app_window", Help: "slices that the application keeps outstanding"},
	},
	Latencies: []reports.DimDef{{Name: "alone", Help: "probes alone"}, {Name: "loaded", Help: "probes under load"}},
	Figures: slices.Concat([]reports.FigureDef{
		{Name: "alone.bw", Quantity: reports.QuantityBytes, Better: reports.More, Help: "bulk alone"},
		{Name: "loaded.bw", Quantity: reports.QuantityBytes, Better: reports.More, Help: "bulk with probes"},
		{Name: "growth.p50", Quantity: reports.QuantityRatio, Help: "median of the probes under load over that alone"},
		{Name: "growth.p99", Quantity: reports.QuantityRatio, Help: "p99 of the probes under load over that alone"},
		{Name: "cpu.gb", Quantity: reports.QuantityTime, Help: "processor time of both sides for 10^9 bytes of bulk"},
		{Name: "cpu.op", Quantity: reports.QuantityTime,
			Help: "processor time of both sides for a bulk message or probe"},
	}, loopFigures("alone", "probes alone"), loopFigures("loaded", "probes under load")),
	Shown: []string{"loaded.p50", "loaded.mean", "loaded.p99", "alone.p50", "alone.mean", "alone.p99", "loaded.bw",
		"alone.bw", "growth.p50", "growth.p99", "cpu.gb", "cpu.op"},
	Detail:   func() reports.Detail { return new(HOL) },
	Describe: describe,
}

func loopFigures(prefix, probes string) []reports.FigureDef {
	return []reports.FigureDef{
		{Name: prefix + ".due", Quantity: reports.QuantityCount, Better: reports.Neither, Help: probes + " that were due"},
		{Name: prefix + ".sent", Quantity: reports.QuantityCount, Better: reports.Neither, Help: "of these, sent"},
		{Name: prefix + ".completed", Quantity: reports.QuantityCount, Better: reports.Neither,
			Help: "of these, answered"},
		{Name: prefix + ".achieved", Quantity: reports.QuantityRate, Better: reports.More,
			Help: "answered over the window"},
		{Name: prefix + ".saturated", Quantity: reports.QuantityCount,
			Help: "1 where the path did not keep up with the probes"},
	}
}

func describe(w *reports.Workload, r *reports.Result) {
	h := Of(r)
	r.Impossible = h.contradiction()
	r.Dims = reports.DimsOf(w.Dims, h.arm(), reports.NotZero(h.BulkSizeBytes), reports.NotZero(h.ProbeSizeBytes),
		reports.NotZero(h.ProbeIntervalNs), reports.NotZero(h.ProbeGapNs),
		reports.NotZero(h.AppSliceBytes), reports.NotZero(h.AppWindow))
	r.Latencies = reports.LatenciesOf(w.Latencies, &h.ProbeAlone, &h.ProbeLoaded)
	for i := range r.Latencies {
		r.Latencies[i].SizeBytes = h.ProbeSizeBytes
	}
	gigabytes := float64(r.Operations) * float64(h.BulkSizeBytes) / 1e9
	operations := r.Operations + max(h.Probes, h.ProbeLoaded.Count-h.ProbeLoaded.Unfinished)
	values := []float64{h.BulkAloneBytesPerSecond, h.BulkLoadedBytesPerSecond, h.growth(0), h.growth(2),
		cpuFor(r, gigabytes), cpuFor(r, float64(operations))}
	for _, o := range []*reports.OpenLoop{h.AloneLoop, h.LoadedLoop} {
		values = append(values, o.Figures()...)
	}
	r.Figures = reports.FiguresOf(w.Figures, values...)
}

func cpuFor(r *reports.Result, units float64) float64 {
	if r.CPU == nil || !(units > 0) || !(r.CPU.ClientSeconds+r.CPU.ServerSeconds > 0) {
		return math.NaN()
	}
	return (r.CPU.ClientSeconds + r.CPU.ServerSeconds) / units * 1e9
}

// growth has no number with too few samples, or where a saturated path makes it the prober's own backlog.
func (h *HOL) growth(i int) float64 {
	alone, loaded := h.ProbeAlone.Percentiles()[i], h.ProbeLoaded.Percentiles()[i]
	if h.saturated() || alone.TooFew || loaded.TooFew || !(alone.Ns > 0) {
		return math.NaN()
	}
	return loaded.Ns / alone.Ns
}

func (h *HOL) contradiction() string {
	// A tenth: two windows of one path differ by that much, and medians of few samples by more.
	const enough = 100
	if h.ProbeAlone.Count < enough || h.ProbeLoaded.Count < enough {
		return ""
	}
	if a, l := h.ProbeAlone.P50, h.ProbeLoaded.P50; a > 0 && l > 0 && l < 0.9*a {
		return "probes were faster under load than alone: p50 " + view.Usec(l) + " against " + view.Usec(a) + " us"
	}
	return ""
}

// armRow is one stack in one arm at one place; its runs are repeats.
type armRow struct {
	stack, arm, op string
	runs           []*reports.Measured
}

// armTable is a place whose rows are compared. A stack without sessions makes calls where others write.
type armTable struct {
	place
	load   reports.Load // of the first row
	mixed  bool         // bulk is carried in several ways
	stacks []string
	rows   []*armRow
}

func armTables(results []reports.Result) (tables []*armTable) {
	var all []*reports.Measured
	for i := range results {
		if Of(&results[i]) != nil {
			all = append(all, &reports.Measured{Result: &results[i]})
		}
	}
	for _, g := range reports.GroupBy(all, func(s *reports.Measured) (place, bool) {
		at := placeOf(s.Result)
		at.run, _ = s.Parameters["run"].(string)
		return at, true
	}) {
		first := g.Samples[0].Result
		t := &armTable{place: g.Key, load: reports.LoadOf(first),
			mixed: slices.ContainsFunc(g.Samples, func(s *reports.Measured) bool { return s.Op != first.Op })}
		for _, stack := range reports.GroupBy(g.Samples, func(s *reports.Measured) (string, bool) { return s.Stack, true }) {
			t.stacks = append(t.stacks, stack.Key)
			for _, row := range reports.GroupBy(stack.Samples, func(s *reports.Measured) ([2]string, bool) {
				return [2]string{Of(s.Result).arm(), s.Op}, true
			}) {
				t.rows = append(t.rows, &armRow{stack.Key, row.Key[0], row.Key[1], row.Samples})
			}
		}
		if len(t.rows) > 1 {
			tables = append(tables, t)
		}
	}
	return tables
}

// raw is the row that another is held against, nil where that was not measured.
func (t *armTable) raw(of *armRow) *armRow {
	for _, stack := range bareStacks(of.stack, of.op) {
		k := slices.IndexFunc(t.rows,
			func(r *armRow) bool { return r.arm == SameQP && r.op == of.op && r.stack == stack })
		if k >= 0 {
			return t.rows[k]
		}
	}
	return nil
}

// bareStacks are what a stack is without its tiers, the least first. Calls keep their carrier, without a scheduler.
func bareStacks(stack, op string) (bare []string) {
	layers := reports.Layers(stack)
	if op == "call" {
		return []string{strings.Join(slices.DeleteFunc(layers,
			func(l string) bool { return strings.HasPrefix(l, "sched") }), "+")}
	}
	for i := len(layers) - 1; i > 0; i-- {
		bare = append(bare, strings.Join(layers[i:], "+"))
	}
	if len(layers) == 1 {
		return layers
	}
	return bare
}

func (r *armRow) median(name string) float64 {
	var runs []*reports.Result
	for _, s := range r.runs {
		runs = append(runs, s.Result)
	}
	if v, ok := reports.MedianFigure(runs, name); ok {
		return v
	}
	return math.NaN()
}

// lower is how many times a figure is below the raw row's. Of a saturated one it would be the prober's backlog.
func (t *armTable) lower(r *armRow, name string) string {
	raw := t.raw(r)
	if raw == nil || saturated(raw.runs) || saturated(r.runs) {
		return "-"
	}
	return view.Ratio(raw.median(name), r.median(name))
}

// Tables are one table for each place that was measured in several arms or over several stacks.
func Tables(results []reports.Result, u view.Units) (out []reports.SideBlock) {
	for _, s := range armTables(results) {
		t := &view.Table{Columns: []view.Column{{Name: "stack", Left: true}, {Name: "arm", Left: true},
			{Name: "alone p50", Unit: "us"}, {Name: "p99", Unit: "us", Spare: 4},
			{Name: "loaded p50", Unit: "us"}, {Name: "p99", Unit: "us"}, {Name: "p50 gain"},
			{Name: "p99 gain", Spare: 2},
			{Name: "bulk alone", Unit: u.Name(), Spare: 5}, {Name: "loaded", Unit: u.Name()},
			{Name: "CPU/GB", Unit: "s", Spare: 1}, {Name: "CPU/op", Unit: "us", Spare: 3}}}
		if s.mixed {
			t.Columns = slices.Insert(t.Columns, 2, view.Column{Name: "bulk by", Left: true})
		}
		repeated := false
		for _, r := range s.rows {
			repeated = repeated || len(r.runs) > 1
			arm := view.Printable(r.arm)
			if saturated(r.runs) {
				arm += ", saturated"
			}
			cells := []view.Cell{{Text: view.Integer(int64(slices.Index(s.stacks, r.stack) + 1))}, {Text: arm},
				{Text: view.Usec(r.median("alone.p50"))}, {Text: view.Usec(r.median("alone.p99"))},
				{Text: view.Usec(r.median("loaded.p50"))}, {Text: view.Usec(r.median("loaded.p99"))},
				{Text: s.lower(r, "loaded.p50")}, {Text: s.lower(r, "loaded.p99")},
				{Text: u.Bandwidth(r.median("alone.bw"))}, {Text: u.Bandwidth(r.median("loaded.bw"))},
				{Text: view.Number(r.median("cpu.gb")/1e9, 3)}, {Text: view.Number(r.median("cpu.op")/1e3, 1)}}
			if s.mixed {
				cells = slices.Insert(cells, 2, view.Cell{Text: view.Printable(r.op)})
			}
			t.Add(cells...)
		}
		load := s.load
		if s.mixed {
			load.Op, load.Polling = "", ""
		}
		b := reports.SideBlock{Title: "variants: " + load.What() + ", bulk of " + reports.SizeLabel(s.bulk), Table: t,
			Conditions: reports.BesideConditions(load, 0, repeated) +
				"; gain: the percentile of " + SameQP + " on the stack without tiers, divided by this one; - where that was " +
				"not measured or one of both is saturated; CPU: both sides, under load, for each bulk message or probe"}
		for i, stack := range s.stacks {
			b.Lines = append(b.Lines, view.Integer(int64(i+1))+": "+stack)
		}
		out = append(out, b)
	}
	return out
}
