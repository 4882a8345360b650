package mixed

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Mixed is what reads and writes got in one window. Latencies are from the post, or of an
// open loop from the intended start, until the completion, of a write that is done by a
// read until that of the read.
type Mixed struct {
	ReadPercent         int     `json:"read_percent"` // asked for
	AchievedReadPercent float64 `json:"achieved_read_percent"`
	Blocks              string  `json:"blocks"` // as --bssplit has them
	SpanBytes           int64   `json:"span_bytes"`
	WriteDone           string  `json:"write_done"` // completion or read

	Reads  Direction `json:"reads"`
	Writes Direction `json:"writes"`
}

// Direction is one of both. Latency is nil where nothing was measured.
type Direction struct {
	Operations          int64            `json:"operations"`
	OperationsPerSecond float64          `json:"operations_per_second"`
	BytesPerSecond      float64          `json:"bytes_per_second"`
	Latency             *reports.Latency `json:"latency,omitempty"`
	Blocks              []BlockCount     `json:"blocks"`
}

// BlockCount is how many operations had a size, and how many of a hundred were to.
type BlockCount struct {
	SizeBytes  int64 `json:"size_bytes"`
	Percent    int   `json:"percent"`
	Operations int64 `json:"operations"`
}

// Of is the detail of a mix of reads and writes, nil for any other.
func Of(r *reports.Result) *Mixed { return reports.DetailOf[Mixed](r) }

// sides are both directions, in the order of tables.
var sides = []struct {
	name string
	of   func(d *Mixed) *Direction
}{
	{"reads", func(d *Mixed) *Direction { return &d.Reads }},
	{"writes", func(d *Mixed) *Direction { return &d.Writes }},
}

// latencyOf is one side's, nil for a result without it.
func latencyOf(side int) func(r *reports.Result) *reports.Latency {
	return func(r *reports.Result) *reports.Latency {
		if d := Of(r); d != nil {
			return sides[side].of(d).Latency
		}
		return nil
	}
}

// shared is what stands in the conditions of a table.
type shared struct {
	span int64
	done string
}

// point tells the points of one table apart.
func (d *Mixed) point() string {
	return strconv.Itoa(d.ReadPercent) + " % reads of " + view.Printable(d.Blocks)
}

//go:embed schema.json
var schema string

// kind describes these results.
var kind = &reports.Kind{
	Workload: Name,
	Called:   "Reads and writes",
	JSON:     reports.OneMember[Mixed](Name).Described(schema),
	Share:    func(r *reports.Result) any { return shared{Of(r).SpanBytes, Of(r).WriteDone} },
	What:     func(reports.Load) string { return "mixed reads and writes" },
	Conditions: func(l reports.Load) string {
		s, _ := l.Share.(shared)
		l.Kind = reports.PlainKind
		parts := []string{l.Conditions(), "random places of " + reports.SizeLabel(s.span) + " for reads and as much for writes"}
		if s.done == doneByRead {
			return strings.Join(append(parts, "a write is done when a read behind it is"), ", ")
		}
		return strings.Join(append(parts, "a write is done when it completes"), ", ")
	},
	Variant:   func(r *reports.Result) string { return Of(r).point() },
	NamesRows: true,
	Shape:     func(r *reports.Result) string { return Of(r).point() },
	Identity: func(r *reports.Result) []reports.Fact {
		return reports.FieldFacts(Of(r), "read_percent", "blocks", "write_done")
	},
	Unlike:    func(r *reports.Result) []reports.Fact { return reports.FieldFacts(Of(r), "span_bytes") },
	Summary:   func(r *reports.Result) reports.Members { return reports.Members{}.WithText("mix", Of(r).point()) },
	Compared:  "Of each read 8 bytes were compared, of some all, and of writes what the last ones left in the window.",
	Medians:   medians,
	Figures:   figures(),
	Compare:   []string{"reads.p50", "reads.p99", "writes.p50", "writes.p99"},
	Intervals: []string{"reads.rate", "writes.rate"},
	Spreads: []reports.Spread{{Name: "operations a second", Of: func(r *reports.Result) float64 {
		return Of(r).Reads.OperationsPerSecond + Of(r).Writes.OperationsPerSecond
	}}},
	OwnLatency: true, OwnRate: true, OwnTable: true, OwnCharts: true, OwnRates: true, OwnSideBySide: true,
	Tables:     tables,
	SideBySide: []*reports.SideBySide{{Rank: 20, Tables: sideBySide}},
	Latencies: func(r *reports.Result) (all []reports.NamedLatency) {
		for i, s := range sides {
			if l := latencyOf(i)(r); l != nil {
				all = append(all, reports.NamedLatency{What: ", " + s.name, Latency: l})
			}
		}
		return all
	},
	PageTables: pageTables,
	Sections:   []*reports.PageSection{{Rank: 35, Of: section}},
	Card:       card,
	CSV:        csv(),
	Bench: reports.BenchLine{
		Parts: func(r *reports.Result) []reports.BenchPart {
			return []reports.BenchPart{{Name: "reads", Value: strconv.Itoa(Of(r).ReadPercent)}, {Name: "blocks", Value: view.Printable(strings.ReplaceAll(Of(r).Blocks, "/", "_"))}}
		},
		Values: []reports.BenchFigure{{Unit: "read-p50-ns", Figure: "reads.p50", Exact: true}, {Unit: "read-p99-ns", Figure: "reads.p99", Exact: true},
			{Unit: "write-p50-ns", Figure: "writes.p50", Exact: true}, {Unit: "write-p99-ns", Figure: "writes.p99", Exact: true}},
	},
	Histograms: func(r *reports.Result) (parts []reports.HistogramPart) {
		for i, s := range sides {
			if l := latencyOf(i)(r); l != nil {
				parts = append(parts, reports.HistogramPart{What: s.name, Latency: l})
			}
		}
		return parts
	},
	NameParts: func(r *reports.Result) []string { return []string{strconv.Itoa(Of(r).ReadPercent), Of(r).Blocks} },
	MetricOp:  func(r *reports.Result) string { return op + " " + Of(r).point() },
	Families:  []*reports.Family{latencyFamily, rateFamily},
	Metrics:   metrics,
}

func figures() (all []reports.Figure) {
	for i, s := range sides {
		all = append(all, reports.LatencyFigures(s.name+".", latencyOf(i))...)
		all = append(all, reports.FigureOf(s.name+".rate", reports.QuantityRate, true, Of, func(d *Mixed) float64 { return s.of(d).OperationsPerSecond }),
			reports.FigureOf(s.name+".bw", reports.QuantityBytes, true, Of, func(d *Mixed) float64 { return s.of(d).BytesPerSecond }))
	}
	return all
}

// csvSince is the generation of these columns.
const csvSince = 9

func csv() []reports.CSVColumn {
	all := []reports.CSVColumn{
		reports.CSVDetail(csvSince, "mixed_read_percent", Of, func(d *Mixed) string { return strconv.Itoa(d.ReadPercent) }),
		reports.CSVDetail(csvSince, "mixed_achieved_read_percent", Of, func(d *Mixed) string { return reports.CSVNumber(d.AchievedReadPercent) }),
		reports.CSVDetail(csvSince, "mixed_blocks", Of, func(d *Mixed) string { return view.Printable(d.Blocks) }),
		reports.CSVDetail(csvSince, "mixed_write_done", Of, func(d *Mixed) string { return view.Printable(d.WriteDone) }),
	}
	for _, s := range sides {
		for _, f := range []struct{ figure, column string }{{"rate", "operations_per_second"}, {"bw", "bytes_per_second"}, {"p50", "p50_ns"}, {"p99", "p99_ns"}, {"p999", "p999_ns"}, {"max", "max_ns"}} {
			all = append(all, reports.CSVFigure(csvSince, "mixed_"+s.name+"_"+f.column, s.name+"."+f.figure))
		}
	}
	return all
}

// medians has the medians of the repeats; operations are those of the first.
func medians(all []*reports.Result) any {
	d := *Of(all[0])
	d.AchievedReadPercent = reports.MedianOver(all, func(r *reports.Result) float64 { return Of(r).AchievedReadPercent })
	for i, s := range sides {
		to := s.of(&d)
		of := func(figure func(x *Direction) float64) float64 {
			return reports.MedianOver(all, func(r *reports.Result) float64 { return figure(s.of(Of(r))) })
		}
		to.OperationsPerSecond = of(func(x *Direction) float64 { return x.OperationsPerSecond })
		to.BytesPerSecond = of(func(x *Direction) float64 { return x.BytesPerSecond })
		if latency := latencyOf(i); !slices.ContainsFunc(all, func(r *reports.Result) bool { return latency(r) == nil }) {
			to.Latency = reports.MedianLatencies(all, latency)
		}
	}
	return &d
}

var (
	latencyFamily = &reports.Family{Name: "mixed_latency_percentile_seconds", Help: "Latency of reads and of writes of a mix.", Labels: []string{"direction"}, Quantiles: true}
	rateFamily    = &reports.Family{Name: "mixed_operations_per_second", Help: "Reads and writes of a mix a second.", Labels: []string{"direction"}}
)

func metrics(r *reports.Result) (all []reports.FamilySample) {
	for _, s := range sides {
		d := s.of(Of(r))
		if d.Latency != nil {
			all = append(all, reports.FamilySample{Family: latencyFamily, Labels: []string{s.name}, Latency: d.Latency})
		}
		all = append(all, reports.FamilySample{Family: rateFamily, Labels: []string{s.name}, Value: d.OperationsPerSecond})
	}
	return all
}
