package rank

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// What everything takes, ns.
const maps, meets, reduces, unmaps = 300, 1100, 700, 200

// alone is a mesh of one rank with a script.
type alone struct{}

func (alone) Barrier(context.Context) error { time.Sleep(meets); return nil }

func (alone) Reduce(_ context.Context, _ []steps.Step, in, out rdma.Buffer, _ arms.Arm) error {
	copy(out.Bytes(), in.Bytes())
	time.Sleep(reduces)
	return nil
}

type scriptedArm struct{ arms.Arm }

func (scriptedArm) Take(n int) (rdma.Buffer, error) { time.Sleep(maps); return rdma.Alloc(n) }
func (scriptedArm) Give(b rdma.Buffer) error        { time.Sleep(unmaps); return b.Free() }

// Each iteration has the time of its all-reduce, without that of the meeting before it, and of
// fresh buffers that of two.
func TestScriptedIterations(t *testing.T) {
	cpu := cpuTime
	defer func() { cpuTime = cpu }()
	for _, fresh := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			cpuTime = func() int64 { return int64(time.Since(began)) * 3 / 4 }
			const n = 40
			w := &work{Run: &Run{Bytes: 4096, Fresh: fresh, Warmup: 2, Iterations: n, Verify: true, Seed: 3},
				s: &server{hello: Hello{Size: 1}}, m: alone{}, arm: scriptedArm{}}
			if err := w.all(t.Context()); err != nil {
				t.Fatal(err)
			}
			each := int64(meets + reduces)
			if fresh {
				each += 2*maps + 2*unmaps
			}
			if w.times.Window != n*each {
				t.Errorf("fresh %v: a window of %d ns, want %d", fresh, w.times.Window, n*each)
			}
			if w.times.CPU != n*each*3/4 || len(w.times.Reduce) != n || fresh != (len(w.times.Map) == n) ||
				fresh != (len(w.times.Unmap) == n) {
				t.Errorf("fresh %v: %d ns of CPU, want %d; %d, %d and %d times", fresh, w.times.CPU, n*each*3/4,
					len(w.times.Map), len(w.times.Reduce), len(w.times.Unmap))
			}
			for i, ns := range w.times.Reduce {
				if ns != reduces || fresh && (w.times.Map[i] != 2*maps || w.times.Unmap[i] != 2*unmaps) {
					t.Errorf("iteration %d: %d ns", i, ns)
				}
			}
		})
	}
}
