package drive_test

import (
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
)

// plain takes PingPong away from a transport.
type plain struct{ transports.Transport }

func (p plain) Caps() transports.Caps {
	c := p.Transport.Caps()
	c.PingPong = false
	return c
}

// The provider's loop runs where both ends have it, and else at neither: all samples are
// there, verified, and none is without time.
func TestTheLoopIsTheSameAtBothEnds(t *testing.T) {
	var points []engine.Point
	for k := transports.KindSend; k < transports.KindCall; k++ {
		points = append(points, engine.Point{Workload: latency.Name, Op: k.String(), Size: 8},
			engine.Point{Workload: latency.Name, Op: k.String(), Size: 8, Rate: 1e5})
	}
	for name, bend := range map[string]func(c, s transports.Transport) (transports.Transport, transports.Transport){
		"both":   func(c, s transports.Transport) (transports.Transport, transports.Transport) { return c, s },
		"client": func(c, s transports.Transport) (transports.Transport, transports.Transport) { return c, plain{s} },
		"server": func(c, s transports.Transport) (transports.Transport, transports.Transport) { return plain{c}, s },
	} {
		t.Run(name, func(t *testing.T) {
			results, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack, transports.Stack) {
				return bend(enginetest.SessionEnds(t, enginetest.MemEnds))
			}, enginetest.QuickPlan(points...))
			if err != nil || len(results) != len(points) {
				t.Fatalf("%d results, %v", len(results), err)
			}
			for _, r := range results {
				if l := r.Latency; l == nil || l.Count != 300 || l.Min <= 0 || !r.Verified {
					t.Errorf("%s: latency %+v, verified %v", r.Op, l, r.Verified)
				}
				want := engine.LoopPlain
				if name == "both" {
					want = engine.LoopProvider
				}
				if r.Parameters["loop"] != want {
					t.Errorf("%s: loop %v, want %v", r.Op, r.Parameters["loop"], want)
				}
			}
		})
	}
}

// A byte that changes on the way, and a completion that never comes, are found by the loop in the provider, too.
func TestBatchesFindFaults(t *testing.T) {
	for fault, want := range map[memdev.Fault]int{memdev.FaultFlipByte: reports.ExitCorruption,
		memdev.FaultDropCompletion: reports.ExitPeer} {
		for _, op := range []string{"send", "write", "read"} {
			t.Run(fault.String()+"/"+op, func(t *testing.T) {
				plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: op, Size: 64})
				plan.Timeout = 300e6
				_, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack, transports.Stack) {
					f := memdev.NewFabric(memdev.Config{Seed: 1})
					f.Arm(fault, memdev.Trigger{After: 150, Device: "client"})
					return enginetest.OpenMem(t, f, "client"), enginetest.OpenMem(t, f, "server")
				}, plan)
				if reports.Code(err) != want {
					t.Errorf("error %v (exit %d), want exit %d", err, reports.Code(err), want)
				}
			})
		}
	}
}
