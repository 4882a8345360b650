package results

import (
	"cmp"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/view"
)

// Values of HOL.Arm.
const (
	SameQP     = "same-qp"     // probes and bulk share one QP
	TwoQP      = "two-qp"      // probes have a QP of their own on the same device
	AppSlicing = "app-slicing" // one QP, and the application cuts the bulk itself
	Device     = "device"      // as two-qp, where one scheduler serves all QPs of a device
)

// HOL is the head-of-line measurement: small probes beside one bulk stream, on
// the same QP unless Arm says otherwise. A probe's latency is its full round trip,
// from the intended start when there is an interval.
type HOL struct {
	Arm             string `json:"arm,omitempty"` // one of those above
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

	// AloneLoop and LoadedLoop say how many of the probes that were due were sent and
	// answered; nil where a probe waits for the one before.
	AloneLoop  *reports.OpenLoop `json:"alone_loop,omitempty"`
	LoadedLoop *reports.OpenLoop `json:"loaded_loop,omitempty"`

	// Of AppSlicing: bytes of a slice, and how many the application keeps
	// outstanding.
	AppSliceBytes int64 `json:"app_slice_bytes,omitempty"`
	AppWindow     int   `json:"app_window,omitempty"`
}

// share is what head-of-line results have in common beside a load; the arms, which
// differ in QPs, share one table.
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

// arm is that of a document from before there was a choice, too.
func (h *HOL) arm() string { return cmp.Or(h.Arm, SameQP) }

// Of is the detail of a head-of-line result, nil for any other.
func Of(r *reports.Result) *HOL { return reports.DetailOf[HOL](r) }

// Contradiction is why the figures cannot be; empty where they can.
func (h *HOL) Contradiction() string {
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
