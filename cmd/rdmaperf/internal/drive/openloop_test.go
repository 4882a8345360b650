package drive_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Every operation can be paced, busy and sleeping, on several QPs and threads;
// operations are exact, and the wait is part of the latency only.
func TestOpenLoopIsExact(t *testing.T) {
	for name, e := range enginetest.StacksUnderTest {
		for _, arrivals := range []string{engine.ArrivalsConstant, engine.ArrivalsPoisson} {
			for _, polling := range []string{engine.PollingBusy, engine.PollingEvent} {
				t.Run(name+"/"+arrivals+"/"+polling, func(t *testing.T) {
					plan := enginetest.QuickPlan()
					for _, op := range []string{"send", "write", "read"} {
						plan.Points = append(plan.Points, engine.Point{Workload: latency.Name, Op: op, Size: 64,
							Rate: 5000})
					}
					plan.Iterations, plan.WarmupIterations, plan.QPs, plan.Threads, plan.Polling, plan.Arrivals = 20, 5,
						2, 2, polling, arrivals
					results, err := enginetest.RunPoints(t, e, plan)
					if err != nil {
						t.Fatal(err)
					}
					for _, r := range results {
						l, s := r.Latency, r.LatencyService
						if r.Operations != 40 || l.Count != 40 || s == nil || s.Count != 40 || !r.Verified {
							t.Fatalf("%s: %+v, want 40 operations", r.Op, r)
						}
						if l.Min < s.Min || l.Max < s.Max || l.Mean < s.Mean || r.LatencyCorrected != nil {
							t.Errorf("%s: latency %+v, service %+v", r.Op, l, s)
						}
						if r.Rate != 5000 || r.Arrivals != arrivals || r.Parameters["rate"] != 5000.0 {
							t.Errorf("%s: rate %v, arrivals %s, parameters %v", r.Op, r.Rate, r.Arrivals, r.Parameters)
						}
						// 40 operations at 5000 a second cannot be done sooner.
						if arrivals == engine.ArrivalsConstant && r.DurationNs < int64(7*time.Millisecond) {
							t.Errorf("%s: 40 operations in %v", r.Op, time.Duration(r.DurationNs))
						}
					}
				})
			}
		}
	}
}

// A session that breaks between two starts ends the run, not the wait.
func TestOpenLoopNoticesABreakWhileItWaits(t *testing.T) {
	f := &enginetest.Fault{}
	broken := errors.New("the cable is gone")
	polls := 0
	f.Poll = func(s transports.Session, dst []transports.Done) (int, error) {
		if polls++; polls > 10_000 {
			return 0, broken
		}
		return s.Poll(dst)
	}
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64, Rate: 1})
	_, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
	if reports.Code(err) != reports.ExitPeer || !errors.Is(err, broken) {
		t.Errorf("error %v (exit %d), want the broken session and exit 5", err, reports.Code(err))
	}
}

// A peer that pauses at the end of a window loses nobody: what was due meanwhile counts
// with its wait, percentiles that fall among it are lower bounds, and the loop is saturated.
func TestOpenLoopLosesNobody(t *testing.T) {
	// The 100th operation is due after 99 ms. The stall reaches well beyond the window: one
	// that ended a millisecond inside it would let a fast loop do many of those due.
	const window, stall, rate = 400 * time.Millisecond, 400 * time.Millisecond, 1000
	const stood = window - 100*time.Millisecond // of the window
	f := &enginetest.Fault{}
	posted := 0
	f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
		if ops[0].Kind == transports.KindSend {
			if posted++; posted == 105 { // five of them in the warm-up
				time.Sleep(stall)
			}
		}
		return s.Post(ops)
	}
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64, Rate: rate})
	plan.Iterations, plan.WarmupIterations, plan.Duration = 0, 5, window
	results, err := enginetest.RunPoints(t, enginetest.WithFault(f), plan)
	if err != nil {
		t.Fatal(err)
	}
	r := results[0]
	o, l := r.OpenLoop, r.Latency
	if o == nil || o.Due < 398 || o.Due > 401 || o.Sent != o.Completed || o.Completed != r.Operations ||
		o.Completed > 110 || !o.Saturated {
		t.Errorf("loop %+v, want 400 due, about 100 of them done, and saturated", o)
	}
	if l.Count != o.Due || l.Unfinished != o.Due-o.Completed || l.P50 < float64(stood)/4 || !l.IsBound("p50") ||
		!l.IsBound("p99") || !l.IsBound("mean") {
		t.Errorf("latency %+v, want all that were due, p50 and p99 lower bounds of some 100 ms and more", l)
	}
	if l.P99 < 0.9*float64(stood) {
		t.Errorf("p99 %v, want about the time from the stall to the window's end", time.Duration(l.P99))
	}
}
