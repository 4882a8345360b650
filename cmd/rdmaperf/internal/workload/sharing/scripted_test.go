package sharing

import (
	"context"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/pairs/pairstest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/reports"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const size, each, trip = 64, 100, 1000

func newLink(users int) *pairstest.Link {
	l := pairstest.New(users, size, 1, users*pairs.Step(size))
	l.Each, l.Trip = each, func(int) time.Duration { return trip }
	return l
}

func take(t *testing.T, l *pairstest.Link, users, n int, all bool) (reports.Result, error) {
	t.Helper()
	pt := engine.Point{Workload: Name, Op: op, Size: size, Options: engine.PackOptions(options{users})}
	return enginetest.First(enginetest.MeasureAlone(t, pt, n, all,
		func(ctx context.Context, r *engine.Run) ([]reports.Result, error) {
			to := &target{Target: l, queuePairs: func() int { return 7 }, registered: func() int { return 8192 }}
			res, err := measure(ctx, r, to, users, func() int64 { return time.Now().UnixNano() })
			return []reports.Result{res}, err
		}))
}

// Few users wait for their own writes, each its round trip; many fill the link.
func TestScriptedUsers(t *testing.T) {
	for users, window := range map[int]int{
		1:  60 * (each + trip),
		3:  20*(each+trip) + 2*each,
		20: 60*each + trip,
	} {
		for _, all := range []bool{false, true} {
			r, err := take(t, newLink(users), users, 60, all)
			if err != nil {
				t.Fatal(err)
			}
			v := curves.Of(&r).Values
			if r.Operations != 60 || r.DurationNs != int64(window) || v["rate"] != 60e9/float64(window) ||
				v["queue_pairs"] != 7 || v["registered_bytes"] != 8192 {
				t.Errorf("%d users: %d in %d ns, %v, want %d ns", users, r.Operations, r.DurationNs, v, window)
			}
			c := r.Verification
			if whole := int64(min(users, 60)); c.Messages != 60 || !all && c.Whole < whole || all && c.Whole != 60 ||
				c.Bytes != size*c.Whole {
				t.Errorf("%d users, all %v: compared %+v", users, all, c)
			}
		}
	}
}

func TestWritesAreNumbered(t *testing.T) {
	const users, n = 3, 60
	for what, bend := range map[string]func(b []byte) []byte{
		"nothing":        func(b []byte) []byte { return b },
		"lost":           func([]byte) []byte { return nil },
		"changed":        func(b []byte) []byte { b[size-1] ^= 4; return b },
		"the one before": func(b []byte) []byte { b[0]--; return b },
		"another user's": func(b []byte) []byte {
			for i := 8; i < size; i++ {
				b[i] += 13
			}
			return b
		},
	} {
		for _, bad := range []int{n + 1, n + 25, 2*n - 1} { // behind as many that fill caches
			l := newLink(users)
			l.Bend = func(i int, b []byte) []byte {
				if i == bad {
					return bend(b)
				}
				return b
			}
			_, err := take(t, l, users, n, true)
			workloadtest.Found(t, what, err)
		}
	}
}
