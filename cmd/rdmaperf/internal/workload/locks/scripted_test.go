package locks

import (
	"context"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/reports"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// What everything takes, ns.
const grant, access, release, added = 700, 100, 50, 400

// script gives its lock in the order of asking; its counter forgets a write, if it is to.
type script struct {
	free   chan struct{}
	value  uint64
	writes int
	forget int
}

func (s *script) add() error { time.Sleep(added); return nil }
func (s *script) contender(int) (contender, error) {
	if s.free == nil {
		s.free = make(chan struct{}, 1) // of the bubble
		s.free <- struct{}{}
	}
	return s, nil
}
func (s *script) lock() error           { <-s.free; time.Sleep(grant); return nil }
func (s *script) unlock() error         { time.Sleep(release); s.free <- struct{}{}; return nil }
func (s *script) read() (uint64, error) { time.Sleep(access); return s.value, nil }
func (s *script) close() error          { return nil }

func (s *script) write(v uint64) error {
	time.Sleep(access)
	if s.writes++; s.writes != s.forget {
		s.value = v
	}
	return nil
}

func measured(t *testing.T, s *script, contenders, n int) (reports.Result, error) {
	t.Helper()
	var failed error
	own := enginetest.Alone(func(ctx context.Context, r *engine.Run) ([]reports.Result, error) {
		if _, err := s.contender(0); err != nil { // made before anybody asks
			return nil, err
		}
		res, err := measure(ctx, r, s, contenders, n)
		failed = err
		return []reports.Result{res}, nil
	})
	plan := engine.Plan{Workloads: engine.Table{Name: {Runner: own}},
		Points: []engine.Point{{Workload: Name, Alone: true, Op: op, Size: 8,
			Options: engine.PackOptions(options{contenders})}}, Iterations: int64(n), Verify: true}
	return enginetest.Measure(t, &scripted.Fabric{}, plan, 1, 1)[0], failed
}

// Alone a lock takes its grant; of several each waits for the turns of all others before it.
func TestScriptedLocks(t *testing.T) {
	const turn, n = grant + 2*access + release, 60
	for contenders, wait := range map[int]float64{1: grant, 3: 2*turn + grant} {
		r, err := measured(t, &script{}, contenders, n)
		if err != nil {
			t.Fatal(err)
		}
		v := curves.Of(&r).Values
		if r.Operations != n || r.DurationNs != n*turn || v["lock_p50_ns"] != wait || v["lock_p99_ns"] != wait ||
			v["fetch_add_p50_ns"] != added || v["rate"] != n/(float64(n*turn)/1e9) || v["fewest_share"] != 1 {
			t.Errorf("%d contenders: %d turns in %d ns, %v, want a wait of %v in %d ns", contenders, r.Operations,
				r.DurationNs, v, wait, n*turn)
		}
		if c := r.Verification; c.Numbers != n || c.Bytes != 8*n {
			t.Errorf("compared %+v", c)
		}
	}
}

// A turn whose number was lost is found.
func TestTurnsAreNumbered(t *testing.T) {
	for _, turn := range []int{1, 30, 60} { // behind the write of 0
		if _, err := measured(t, &script{forget: turn + 1}, 2, 60); reports.Code(err) != reports.ExitCorruption {
			t.Errorf("turn %d: %v", turn, err)
		}
	}
}
