package mixed

import (
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

// kind describes these results.
var kind = &reports.Kind{
	Workload: Name,
	Results:  results,
	Called:   "Reads and writes",
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
	Medians:   medians,
	Spreads: []reports.Spread{{Name: "operations a second", Of: func(r *reports.Result) float64 {
		return Of(r).Reads.OperationsPerSecond + Of(r).Writes.OperationsPerSecond
	}}},
	OwnLatency: true, OwnRate: true, OwnTable: true, OwnCharts: true, OwnRates: true, OwnSideBySide: true,
	Tables:     tables,
	SideBySide: []*reports.SideBySide{{Rank: 20, Tables: sideBySide}},
	PageTables: pageTables,
	Sections:   []*reports.PageSection{{Rank: 35, Of: section}},
	Card:       card,
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
