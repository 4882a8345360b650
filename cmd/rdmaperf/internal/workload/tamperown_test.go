package workload_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/catalogue"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/clients"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/qos"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/regions"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/register"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/sharing"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/internal/fulltest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/direct"
	"github.com/rdmaperf/rdmaperf/transports/lite/stack"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func alone(t *testing.T, p *enginetest.Tamper, tier bool, pt engine.Point, n int64) ([]reports.Result, error) {
	t.Helper()
	name, device := "iwarp(nocrc)", func(string) (rdma.Device, error) {
		return p.Device(enginetest.UncheckedDevice(t)), nil
	}
	var s transports.Stack = direct.New(enginetest.UncheckedDevice(t))
	if tier {
		l, err := stack.New(enginetest.UncheckedDevice(t), stack.Config{})
		must(t, err)
		name, s = "lite+"+name, l
	}
	defer s.Close()
	plan := enginetest.QuickPlan(pt)
	plan.Workloads, plan.Transport, plan.Iterations, plan.VerifyAll, plan.Timeout = catalogue.Table(), name, max(n, 1),
		true, 2*time.Second
	c, err := engine.Alone(s, plan)
	must(t, err)
	defer c.Close()
	c.Open = engine.Opener{Device: device}
	return c.Run(t.Context(), 0)
}

// What changes on the way is found on a stack without a check. Bytes are about those that are carried that way.
func TestTamperingIsFoundInRunsOfTheirOwn(t *testing.T) {
	type options = map[string]any
	pack := func(name, op string, size int, o options) engine.Point {
		return engine.Point{Workload: name, Alone: true, Op: op, Size: size, Options: engine.PackOptions(o)}
	}
	const size, n = 6000, 60
	for _, c := range []struct {
		name  string
		pt    engine.Point
		n     int64
		tier  bool
		bytes int64
		back  bool
	}{
		{"sharing", pack(sharing.Name, "users", size, options{"Users": 1}), n, false, 2 * n * size, false},
		{"sharing of LITE", pack(sharing.Name, "users", size, options{"Users": 3}), n, true, n * size / 2, false},
		{"regions", pack(regions.Name, "count", size, options{"Regions": 4, "Total": 80_000, "Sizes": []int{size},
			"X": 4}), n, false, 3 * n * size, false},
		{"regions of LITE", pack(regions.Name, "count", size,
			options{"Regions": 4, "Total": 80_000, "Sizes": []int{size}, "X": 4}), n, true, n * size / 2, false},
		{"making regions", pack(regions.Name, "make", size, options{"Regions": 20, "Total": 20 * 8192,
			"Sizes": []int{size}, "X": 8192}), n, false, 20 * size, false},
		{"clients", pack(clients.Name, "count", 50_000, options{"Clients": 1}), 0, false, 50_000, false},
		{"clients of LITE", pack(clients.Name, "count", 50_000, options{"Clients": 1}), 0, true, 50_000, false},
		{"qos, low", pack(qos.Name, "time", 64, options{"Window": 900 * time.Millisecond}), 0, true, 1 << 20, false},
		{"qos, high", pack(qos.Name, "time", 64, options{"Window": 900 * time.Millisecond}), 0, true, 5 << 10, true},
		{"register", pack(register.Name, "repeated", size, options{"arm": "none", "pattern": "repeated",
			"offload": "none", "asked": true, "alone": true, "threads": 1, "window_ns": 600 * time.Millisecond}), 0,
			false, 12_000, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := []float64{0.52, 0.17, 0.88}
			if !fulltest.Asked() {
				parts = parts[:1]
			}
			workloadtest.Tampered(t, c.bytes, c.back, func(p *enginetest.Tamper) error {
				_, err := alone(t, p, c.tier, c.pt, c.n)
				return err
			}, parts...)
			results, err := alone(t, &enginetest.Tamper{T: t, At: 1 << 60}, c.tier, c.pt, c.n)
			if err != nil {
				t.Fatalf("where nothing changes: %v", err)
			}
			for _, r := range results {
				if v := r.Verification; v == nil || !r.Verified || v.Whole != v.Messages || v.Numbers != v.Messages {
					t.Errorf("compared %+v", v)
				}
			}
		})
	}
}

// Either side of a workload with options refuses those that it does not know before it opens anything.
func TestStrangeOptionsAreRefusedBeforeAPointRuns(t *testing.T) {
	alone := map[string]bool{"clients": true, "sharing": true, "locks": true, "qos": true, "regions": true,
		"register": true}
	withServer := map[string]bool{"allreduce": true, "think": true, "kv": true, "mixed": true, "starvation": true,
		"paramserver": true}
	tried := 0
	for _, w := range catalogue.All() {
		name := w.Meta().Name
		if !alone[name] && !withServer[name] {
			continue
		}
		tried++
		for _, o := range []engine.Options{"", "null?", `{"Nonsense":1}`, `{"Think":-1,"Clients":-1}`, "{}"} {
			pt := engine.Point{Workload: name, Options: o}
			s := engine.Setup{Plan: &engine.Plan{}, Point: pt}
			if err := w.Client(t.Context(), &engine.Run{Setup: s}); reports.Code(err) != reports.ExitUsage {
				t.Errorf("the client of %s, with the options %q: %v", name, o, err)
			}
			err := w.Server(t.Context(), &engine.Serve{Setup: s})
			if withServer[name] && reports.Code(err) != reports.ExitUsage ||
				alone[name] && !strings.Contains(err.Error(), "has no server") {
				t.Errorf("the server of %s, with the options %q: %v", name, o, err)
			}
		}
	}
	if tried != len(alone)+len(withServer) {
		t.Errorf("%d workloads with options", tried)
	}
}
