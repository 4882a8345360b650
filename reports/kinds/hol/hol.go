package hol

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

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
	Results:  Results,
	Called:   "Head-of-line",
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
	Contradiction: func(r *reports.Result) string {
		// A tenth: two windows of one path differ by that much.
		if a, l := Of(r).ProbeAlone.P50, Of(r).ProbeLoaded.P50; a > 0 && l > 0 && l < 0.9*a {
			return "probes were faster beside the bulk than alone: p50 " + view.Usec(l) + " against " + view.Usec(a) + " us"
		}
		return ""
	},
	Medians: medians,
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
}

func probeAlone(r *reports.Result) *reports.Latency {
	if h := Of(r); h != nil {
		return &h.ProbeAlone
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

func medians(all []*reports.Result) any {
	h := *Of(all[0])
	h.ProbeAlone, h.ProbeLoaded = *reports.MedianLatencies(all, probeAlone), *reports.MedianLatencies(all, probeLoaded)
	h.BulkAloneBytesPerSecond = reports.MedianOver(all, func(r *reports.Result) float64 { return bulkAlone(Of(r)) })
	h.BulkLoadedBytesPerSecond = reports.MedianOver(all, func(r *reports.Result) float64 { return bulkLoaded(Of(r)) })
	return &h
}

// Of is the detail of a head-of-line result, nil for any other.
func Of(r *reports.Result) *HOL { return reports.DetailOf[HOL](r) }
