package think

import (
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/curves"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// A call takes both ways and what the server thinks; of four ns this process uses three.
func TestScriptedThinking(t *testing.T) {
	const out, back, n, size, share = 700, 500, 60, 64, 3
	spin := compute
	defer func() { compute = spin }()
	compute = func(d time.Duration) { time.Sleep(d) }
	for _, think := range []time.Duration{0, 5000} {
		f := &scripted.Fabric{Times: scripted.Times{Out: out, Back: back, Idle: time.Microsecond}, Apart: true}
		plan := engine.Plan{Workloads: workload.Table(new(Workload)),
			Points:     []engine.Point{{Workload: Name, Op: op, Size: size, Options: engine.PackOptions(options{think})}},
			Iterations: n, Verify: true}
		for _, r := range enginetest.Measure(t, f, plan, share, 4) {
			call := float64(out + back + think)
			v := curves.Of(&r).Values
			if r.Operations != n || r.DurationNs != int64(n*call) || v["call_p50_ns"] != call ||
				v["call_p99_ns"] != call || v["waiting_p50_ns"] != out+back {
				t.Errorf("%v: %d calls in %d ns, %v, want %v ns", think, r.Operations, r.DurationNs, v, call)
			}
			if v["client_cpu_ns"] != call*share/4 || v["client_busy"] != share/4. ||
				v["server_cpu_ns"] != call*share/4 || r.CPU.ClientSeconds != n*call*share/4/1e9 ||
				r.CPU.ServerSeconds != r.CPU.ClientSeconds {
				t.Errorf("%v: %v, %+v of calls of %v ns", think, v, r.CPU, call)
			}
			if c := r.Verification; c.Messages != n || c.Whole != n || c.Bytes != n*size {
				t.Errorf("compared %+v", c)
			}
		}
	}
}
