package regions

import (
	"context"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs/pairstest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/reports"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const each, trip, slow = 100, 1000, 700

func take(t *testing.T, l *pairstest.Link, o options, n int, all bool) ([]reports.Result, error) {
	t.Helper()
	pt := engine.Point{Workload: Name, Op: opCount, Size: o.Sizes[0], Options: engine.PackOptions(o)}
	return enginetest.MeasureAlone(t, pt, n, all, func(ctx context.Context, r *engine.Run) ([]reports.Result, error) {
		return measure(ctx, r, &o, l, made{make: 5, mapped: 6}, func() int64 { return time.Now().UnixNano() })
	})
}

func newLink(o options) *pairstest.Link {
	l := pairstest.New(depth, o.Sizes[len(o.Sizes)-1], o.Regions, int(o.Total)/o.Regions)
	l.Each, l.Trip = each, func(int) time.Duration { return trip }
	return l
}

// Writes under way together fill the link; one alone takes its round trip, and two of a hundred are slower.
func TestScriptedRegions(t *testing.T) {
	const n = 100
	o := options{Regions: 64, Total: 64 << 14, Sizes: []int{64, 256}, X: 64}
	l := newLink(o)
	l.Trip = func(i int) time.Duration { // of each size n fill caches, n are timed, and n are alone
		if at := i % (3 * n); at >= 2*n && at%50 == 7 {
			return trip + slow
		}
		return trip
	}
	results, err := take(t, l, o, n, false)
	if err != nil || len(results) != 2 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	const window = n*each + trip
	for i, r := range results {
		v := curves.Of(&r).Values
		if r.SizeBytes != int64(o.Sizes[i]) || r.Operations != n || r.DurationNs != window ||
			v["rate"] != n*1e9/float64(window) {
			t.Errorf("%d in %d ns, %v, want %d ns", r.Operations, r.DurationNs, v, window)
		}
		if v["latency_p50_ns"] != each+trip || v["latency_p99_ns"] != each+trip+slow || v["make_ns"] != 5 ||
			v["map_ns"] != 6 {
			t.Errorf("%v, want %d and %d ns", v, each+trip, each+trip+slow)
		}
		if c := r.Verification; c.Messages != n || c.Whole < depth || c.Whole != c.Numbers ||
			c.Bytes != c.Whole*r.SizeBytes {
			t.Errorf("compared %+v", c)
		}
	}
}

// Overlapping places are written one after the other where they are compared, so that each write is found.
func TestWritesToOnePlaceAreNumbered(t *testing.T) {
	const n = 80
	o := options{Regions: 1, Total: 200, Sizes: []int{64}, X: 1}
	for what, bend := range map[string]func(b []byte) []byte{
		"nothing":        func(b []byte) []byte { return b },
		"lost":           func([]byte) []byte { return nil },
		"changed":        func(b []byte) []byte { b[63] ^= 4; return b },
		"the one before": func(b []byte) []byte { b[0]--; return b },
	} {
		for _, bad := range []int{n, n + 33, 2*n - 1, 2*n + 9} {
			l := newLink(o)
			l.Bend = func(i int, b []byte) []byte {
				if i == bad {
					return bend(b)
				}
				return b
			}
			_, err := take(t, l, o, n, true)
			workloadtest.Found(t, what, err)
		}
	}
}
