package paramserver

import (
	"math"
	"strings"
	"testing"

	"github.com/rdmaperf/rdmaperf/reports"
)

// Overlap is all, nothing, and what lies between; nothing to hide has none.
func TestOverlap(t *testing.T) {
	for _, c := range []struct{ comm, comp, iteration, want float64 }{{100, 50, 100, 1}, {100, 50, 150, 0},
		{100, 200, 250, 0.5}, {100, 100, 250, -0.5}} {
		ps := &ParamServer{CommunicationNs: c.comm, ComputeNs: c.comp,
			Iteration: reports.Latency{Count: 9, P50: c.iteration}}
		ps.Complete([]float64{1, 2})
		if ps.Overlap == nil || math.Abs(*ps.Overlap-c.want) > 1e-9 || ps.IdealNs != max(c.comm, c.comp) ||
			ps.MeanLow != 0 || ps.MeanHigh != 0 {
			t.Errorf("%+v: %+v", c, ps)
		}
	}
	ps := &ParamServer{CommunicationNs: 100, Iteration: reports.Latency{Count: 9, P50: 100}}
	ps.Complete([]float64{10, 11, 12})
	// Student's factor of two degrees of freedom is 4.303.
	if half := (ps.MeanHigh - ps.MeanLow) / 2; ps.Overlap != nil || math.Abs(half-4.303/math.Sqrt(3)) > 1e-3 {
		t.Errorf("overlap %v, half width %v", ps.Overlap, half)
	}
}

func TestAnOverlapBeyondAllIsImpossible(t *testing.T) {
	for overlap, want := range map[float64]string{0.93: "", -7.862: "-786.2 %"} {
		if got := (&ParamServer{Overlap: &overlap}).Contradiction(); (got == "") != (want == "") ||
			!strings.Contains(got, want) {
			t.Errorf("%v: %q, want %q", overlap, got, want)
		}
	}
}
