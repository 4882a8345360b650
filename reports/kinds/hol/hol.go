package hol

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Values of HOL.Arm.
const (
	ArmSameQP     = "same-qp"     // probes and bulk share one QP
	ArmTwoQP      = "two-qp"      // probes have a QP of their own on the same device
	ArmAppSlicing = "app-slicing" // one QP, and the application cuts the bulk itself
	ArmDevice     = "device"      // as two-qp, where one scheduler serves all QPs of a device
)

// HOL is the head-of-line measurement: small probes beside one bulk stream, on
// the same QP unless Arm says otherwise. A probe's latency is its full round trip,
// from the intended start when there is an interval.
type HOL struct {
	Arm                      string          `json:"arm,omitempty"` // one of those above
	BulkSizeBytes            int64           `json:"bulk_size_bytes"`
	ProbeSizeBytes           int64           `json:"probe_size_bytes"`
	ProbeIntervalNs          int64           `json:"probe_interval_ns,omitempty"` // probes are due at it
	ProbeGapNs               int64           `json:"probe_gap_ns,omitempty"`      // one at a time: the least between two starts
	Probes                   int64           `json:"probes_loaded,omitempty"`     // beside the bulk
	ProbeAlone               reports.Latency `json:"probe_alone"`
	ProbeLoaded              reports.Latency `json:"probe_loaded"`
	BulkAloneBytesPerSecond  float64         `json:"bulk_alone_bytes_per_second"`
	BulkLoadedBytesPerSecond float64         `json:"bulk_loaded_bytes_per_second"`

	// AloneLoop and LoadedLoop say how many of the probes that were due were sent and
	// answered; nil where a probe waits for the one before.
	AloneLoop  *reports.OpenLoop `json:"alone_loop,omitempty"`
	LoadedLoop *reports.OpenLoop `json:"loaded_loop,omitempty"`

	// Of ArmAppSlicing: bytes of a slice, and how many the application keeps
	// outstanding.
	AppSliceBytes int64 `json:"app_slice_bytes,omitempty"`
	AppWindow     int   `json:"app_window,omitempty"`
}

// share is what head-of-line results have in common beside a load; the arms, which
// differ in QPs, stand in one table.
type share struct{ probe, interval, gap int64 }

func shareOf(r *reports.Result) share {
	return share{Of(r).ProbeSizeBytes, Of(r).ProbeIntervalNs, Of(r).ProbeGapNs}
}

// String is how the probes come.
func (h share) String() string {
	probes := "probes of " + view.Plural(h.probe, "byte")
	switch {
	case h.interval != 0:
		return probes + " every " + view.Number(float64(h.interval)/1000, -1) + " us"
	case h.gap != 0:
		return probes + " one at a time, " + view.Number(float64(h.gap)/1000, -1) + " us apart at least"
	}
	return probes + " in a closed loop"
}

// Kind describes these results.
var Kind = &reports.Kind{
	Workload: "hol",
	Called:   "Head-of-line",
	JSON:     reports.OneMember[HOL]("hol"),
	Share:    func(r *reports.Result) any { return shareOf(r) },
	Title:    func(l reports.Load) string { return strings.TrimSpace("Head-of-line " + l.Op) },
	Conditions: func(l reports.Load) string {
		parts := []string{fmt.Sprintf("bulk depth %d, %s", l.Depth, l.Share.(share))}
		if l.Polling != "" {
			parts = append(parts, l.Polling+" polling")
		}
		return strings.Join(append(parts, "full round trip"), ", ")
	},
	AnyQPs:   true, // one or two by the arm
	Variant:  func(r *reports.Result) string { return "arm " + Of(r).Arm },
	Aside:    func(r *reports.Result) string { return Of(r).Arm },
	SeriesOf: func(r *reports.Result) string { return strings.TrimSpace("loaded probes " + Of(r).Arm) },
	Arm:      func(r *reports.Result) string { return view.Visible(Of(r).arm()) },
	Shape: func(r *reports.Result) string {
		return fmt.Sprintf("bulk of %s, %s", reports.SizeLabel(Of(r).BulkSizeBytes), view.Visible(Of(r).arm()))
	},
	SampleSize: func(r *reports.Result) int64 { return Of(r).ProbeSizeBytes },
	Identity:   identity,
	Summary:    func(r *reports.Result) reports.Members { return reports.Members{}.WithText("arm", Of(r).Arm) },
	Contradiction: func(r *reports.Result) string {
		// A tenth: two windows of one path differ by that much.
		if a, l := Of(r).ProbeAlone.P50, Of(r).ProbeLoaded.P50; a > 0 && l > 0 && l < 0.9*a {
			return "probes were faster beside the bulk than alone: p50 " + view.Usec(l) + " against " + view.Usec(a) + " us"
		}
		return ""
	},
	Medians: medians,
	Figures: slices.Concat(
		reports.LatencyFigures("alone.", probeAlone), reports.LatencyFigures("loaded.", probeLoaded),
		[]reports.Figure{reports.FigureOf("alone.bw", reports.QuantityBytes, true, Of, bulkAlone), reports.FigureOf("loaded.bw", reports.QuantityBytes, true, Of, bulkLoaded),
			cpuFigure("cpu.gb", cpuPerGB), cpuFigure("cpu.op", cpuPerOp)}),
	Compare:   []string{"alone.p50", "alone.p99", "loaded.p50", "loaded.p99", "alone.bw", "loaded.bw"},
	Intervals: []string{"alone.p50", "alone.mean", "alone.p99", "loaded.p50", "loaded.mean", "loaded.p99", "alone.bw", "loaded.bw"},
	Spreads: []reports.Spread{{Name: "loaded p50", Of: func(r *reports.Result) float64 { return Of(r).ProbeLoaded.P50 }},
		{Name: "loaded p99", Of: func(r *reports.Result) float64 { return Of(r).ProbeLoaded.P99 }}},
	Interval: &reports.IntervalForm{Of: "probes",
		Columns: func(u view.Units) []view.Column {
			return append(slices.Clone(reports.IntervalTimes), view.Column{Name: "bulk", Unit: u.Name()})
		},
		Rows: func(r *reports.Result) (rows []reports.IntervalRow) {
			for _, probes := range []string{"alone", "loaded"} {
				rows = append(rows, reports.IntervalRow{Arm: Of(r).arm(), Of: probes, Figures: []string{probes + ".p50", probes + ".mean", probes + ".p99", probes + ".bw"}})
			}
			return rows
		}},
	OwnTable:   true,
	Tables:     tables,
	SideBySide: []*reports.SideBySide{{Rank: 30, Tables: armsBySide}},
	Latencies: func(r *reports.Result) []reports.NamedLatency {
		return []reports.NamedLatency{{What: ", probe alone", Latency: probeAlone(r)}, {What: ", probe loaded", Latency: probeLoaded(r)}}
	},
	Loops: func(r *reports.Result) (all []reports.NamedLoop) {
		for _, l := range []reports.NamedLoop{{What: "probes alone", Loop: Of(r).AloneLoop}, {What: "probes loaded", Loop: Of(r).LoadedLoop}} {
			if l.Loop != nil {
				all = append(all, l)
			}
		}
		return all
	},
	Sections:  []*reports.PageSection{{Rank: 10, Of: section}, {Rank: 11, Of: sliceSection}},
	OwnCharts: true,
	Card: &reports.CardKind{Rank: 10,
		Has:    func(s *reports.Measured) bool { return !Of(s.Result).saturated() },
		Figure: func(s *reports.Measured) float64 { return Of(s.Result).ProbeLoaded.P50 },
		Kicker: func(k reports.Condition) string {
			return fmt.Sprintf("Head-of-line · %s probes · %s", reports.SizeLabel(k.Share.(share).probe), k.Extra)
		},
		Winner: " of loaded probes",
		Note:   func(in []*reports.Measured) string { return note(reports.Split(in)) },
	},
	CSV: slices.Concat(reports.CSVLatency(0, "probe_alone", probeAlone), reports.CSVLatency(0, "probe_loaded", probeLoaded), []reports.CSVColumn{
		reports.CSVDetail(0, "bulk_size_bytes", Of, func(h *HOL) string { return view.Integer(h.BulkSizeBytes) }),
		reports.CSVDetail(0, "probe_size_bytes", Of, func(h *HOL) string { return view.Integer(h.ProbeSizeBytes) }),
		reports.CSVDetail(0, "probe_interval_ns", Of, func(h *HOL) string { return view.Integer(h.ProbeIntervalNs) }),
		reports.CSVFigure(0, "bulk_alone_bytes_per_second", "alone.bw"),
		reports.CSVFigure(0, "bulk_loaded_bytes_per_second", "loaded.bw"),
		reports.CSVDetail(0, "arm", Of, func(h *HOL) string { return view.Printable(h.Arm) }),
		reports.CSVDetail(3, "app_slice_bytes", Of, func(h *HOL) string { return reports.WhenSet(h.AppSliceBytes) }),
		reports.CSVDetail(3, "app_window", Of, func(h *HOL) string { return reports.WhenSet(int64(h.AppWindow)) }),
		reports.CSVDetail(8, "probe_alone_due", aloneLoop, func(o *reports.OpenLoop) string { return view.Integer(o.Due) }),
		reports.CSVDetail(8, "probe_alone_completed", aloneLoop, func(o *reports.OpenLoop) string { return view.Integer(o.Completed) }),
		reports.CSVDetail(8, "probe_alone_saturated", aloneLoop, func(o *reports.OpenLoop) string { return strconv.FormatBool(o.Saturated) }),
		reports.CSVDetail(8, "probe_loaded_due", loadedLoop, func(o *reports.OpenLoop) string { return view.Integer(o.Due) }),
		reports.CSVDetail(8, "probe_loaded_completed", loadedLoop, func(o *reports.OpenLoop) string { return view.Integer(o.Completed) }),
		reports.CSVDetail(8, "probe_loaded_saturated", loadedLoop, func(o *reports.OpenLoop) string { return strconv.FormatBool(o.Saturated) }),
	}),
	// Its ns/op is that of the loaded bulk stream.
	Bench: reports.BenchLine{Parts: benchParts, Values: []reports.BenchFigure{
		{Unit: "alone-p50-ns", Figure: "alone.p50", Zero: true}, {Unit: "alone-p99-ns", Figure: "alone.p99", Zero: true},
		{Unit: "loaded-p50-ns", Figure: "loaded.p50", Zero: true}, {Unit: "loaded-p99-ns", Figure: "loaded.p99", Zero: true},
		{Unit: "bulk-alone-B/s", Figure: "alone.bw"}, {Unit: "bulk-loaded-B/s", Figure: "loaded.bw"},
	}},
	Histograms: func(r *reports.Result) []reports.HistogramPart {
		return []reports.HistogramPart{{What: "probe-alone", Latency: probeAlone(r)}, {What: "probe-loaded", Latency: probeLoaded(r)}}
	},
	NameParts: func(r *reports.Result) []string {
		if arm := Of(r).Arm; arm != "" {
			return []string{arm}
		}
		return nil
	},
	Families: []*reports.Family{probeFamily, bulkFamily},
	Metrics:  metrics,
}

func probeAlone(r *reports.Result) *reports.Latency {
	if h := Of(r); h != nil {
		return &h.ProbeAlone
	}
	return nil
}

func aloneLoop(r *reports.Result) *reports.OpenLoop {
	if h := Of(r); h != nil {
		return h.AloneLoop
	}
	return nil
}

func loadedLoop(r *reports.Result) *reports.OpenLoop {
	if h := Of(r); h != nil {
		return h.LoadedLoop
	}
	return nil
}

func probeLoaded(r *reports.Result) *reports.Latency {
	if h := Of(r); h != nil {
		return &h.ProbeLoaded
	}
	return nil
}

// arm is that of a document from before there was a choice, too.
func (h *HOL) arm() string { return cmp.Or(h.Arm, ArmSameQP) }

func identity(r *reports.Result) []reports.Fact {
	facts := reports.FieldFacts(Of(r), "arm", "bulk_size_bytes", "bulk_depth", "probe_size_bytes", "probe_interval_ns", "app_slice_bytes", "app_window", "probe_gap_ns")
	facts[0] = facts[0].Saying(Of(r).Arm)
	if Of(r).BulkSizeBytes == r.SizeBytes {
		facts[1] = facts[1].Saying("")
	}
	if every := Of(r).ProbeIntervalNs; every != 0 {
		facts[4] = facts[4].Saying("every " + time.Duration(every).String())
	}
	if gap := Of(r).ProbeGapNs; gap != 0 {
		facts[7] = facts[7].Saying("one at a time, " + time.Duration(gap).String() + " apart")
	}
	return facts
}

func medians(all []*reports.Result) any {
	h := *Of(all[0])
	h.ProbeAlone, h.ProbeLoaded = *reports.MedianLatencies(all, probeAlone), *reports.MedianLatencies(all, probeLoaded)
	h.BulkAloneBytesPerSecond = reports.MedianOver(all, func(r *reports.Result) float64 { return bulkAlone(Of(r)) })
	h.BulkLoadedBytesPerSecond = reports.MedianOver(all, func(r *reports.Result) float64 { return bulkLoaded(Of(r)) })
	return &h
}

func benchParts(r *reports.Result) []reports.BenchPart {
	h := Of(r)
	if h.Arm == "" {
		return nil
	}
	parts := []reports.BenchPart{{Name: "arm", Value: h.Arm}}
	if h.AppWindow > 0 {
		parts = append(parts, reports.BenchPart{Name: "app_slice", Value: view.Integer(h.AppSliceBytes)}, reports.BenchPart{Name: "app_window", Value: view.Integer(int64(h.AppWindow))})
	}
	return parts
}

var (
	probeFamily = &reports.Family{Name: "hol_probe_duration_percentile_seconds", Quantiles: true, Labels: []string{"arm", "bulk_size", "probe_size", "state"},
		Help: "Latency of small probes alone and beside a bulk stream, of the last measurement."}
	bulkFamily = &reports.Family{Name: "hol_bulk_bytes_per_second", Labels: []string{"arm", "bulk_size", "probe_size", "state"},
		Help: "Rate of the bulk stream alone and beside small probes, of the last measurement."}
)

func metrics(r *reports.Result) []reports.FamilySample {
	h := Of(r)
	of := func(state string) []string {
		return []string{view.Printable(h.Arm), view.Integer(h.BulkSizeBytes), view.Integer(h.ProbeSizeBytes), state}
	}
	return []reports.FamilySample{
		{Family: probeFamily, Labels: of("alone"), Latency: &h.ProbeAlone}, {Family: bulkFamily, Labels: of("alone"), Value: h.BulkAloneBytesPerSecond},
		{Family: probeFamily, Labels: of("loaded"), Latency: &h.ProbeLoaded}, {Family: bulkFamily, Labels: of("loaded"), Value: h.BulkLoadedBytesPerSecond},
	}
}

// Of is the detail of a head-of-line result, nil for any other.
func Of(r *reports.Result) *HOL { return reports.DetailOf[HOL](r) }
