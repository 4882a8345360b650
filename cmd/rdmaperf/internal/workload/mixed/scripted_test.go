package mixed

import (
	"math"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest/scripted"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload"
)

// A read takes its way there and its data's back, a write its data's way and an acknowledgement's. Where completions
// are local a write takes the link alone; with a read behind it the longer way.
func TestScriptedMix(t *testing.T) {
	const (
		out, back, each = 700, 500, 100
		n, size, mix    = 200, 1000, 70
		read            = each + out + each + size + back
		byteBack        = each + out + each + 1 + back
		proof           = byteBack
	)
	for _, c := range []struct {
		name         string
		local, flush bool
		write        float64
	}{
		{"acknowledged", false, false, each + size + out + back},
		{"local", true, false, each + size},
		{"flushed", false, true, each + size + byteBack},
		{"local and flushed", true, true, each + size + byteBack},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &scripted.Fabric{Times: scripted.Times{Out: out, Back: back, Send: each, PerByte: 1,
				Idle: 2 * time.Microsecond}, Local: c.local}
			one := []Block{{size, hundred}}
			o := Options{ReadPercent: mix, Reads: one, Writes: one, Span: 1 << 16, Flush: c.flush}
			plan := engine.Plan{Workloads: workload.Table(new(Workload)), Points: []engine.Point{pointOf(o)}, Iterations: n,
				Depth: 1, Verify: true}
			for _, r := range enginetest.Measure(t, f, plan, 3, 5) {
				d := Of(&r)
				reads, writes := int64(n*mix/hundred), int64(n*(hundred-mix)/hundred)
				if d.Reads.Operations != reads || d.Writes.Operations != writes || d.AchievedReadPercent != mix {
					t.Errorf("%d reads, %d writes, %v %%", d.Reads.Operations, d.Writes.Operations,
						d.AchievedReadPercent)
				}
				if l := d.Reads.Latency; l.Count != reads || l.Min != read || l.Mean != read && !c.local ||
					l.P50 != read {
					t.Errorf("reads %+v, want %d throughout", l, read)
				}
				if l := d.Writes.Latency; l.Count != writes || l.Min != c.write || l.Mean != c.write ||
					l.Max != c.write {
					t.Errorf("writes %+v, want %v throughout", l, c.write)
				}
				window := float64(r.DurationNs)
				if want := float64(reads*read) + float64(writes)*c.write + proof; !c.local && window != want {
					t.Errorf("a window of %v ns, want %v", window, want)
				}
				if got, want := r.Throughput.BytesPerSecond*window/1e9, float64(n*size); math.Abs(got-want) > 1e-3 {
					t.Errorf("%v bytes, want %v", got, want)
				}
				if v := r.Verification; v == nil || v.Numbers < reads+1 || v.Messages != n {
					t.Errorf("compared %+v", v)
				}
			}
		})
	}
}
