package allreduce

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/mesh"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Of ranks whose times are given the slowest counts, in each iteration and stage.
func TestScriptedRanks(t *testing.T) {
	const n, size = 100, 1 << 20
	times := make([]*Times, 4)
	for r := range times {
		times[r] = &Times{CPU: int64(1000 * (r + 1)), Window: int64(time.Second)}
		times[r].Noise = reports.Noise{Threads: 1, RunQueueWaitNs: int64(r%3) * 100e6, Segments: 1000}
		for i := range n {
			slow := int64(0) // another rank each time
			if i%4 == r {
				slow = 200
			}
			times[r].Map, times[r].Unmap = append(times[r].Map, 300+slow), append(times[r].Unmap, 200)
			if i == 13 {
				slow += 4000
			}
			times[r].Reduce = append(times[r].Reduce, 800+slow)
		}
	}
	d, took := detail(size, &options{Ranks: 4}, Run{Iterations: n, Fresh: true}, times)
	const mapped, reduced, unmapped, mean = 500, 1000, 200, 1700 + 4000/n
	if d.Map.P50 != mapped || d.Map.Mean != mapped || d.Unmap.Mean != unmapped || d.Reduce.P50 != reduced ||
		d.Reduce.Max != reduced+4000 || d.Reduce.Mean != reduced+4000/n {
		t.Errorf("map %+v, reduce %+v, unmap %+v", d.Map, d.Reduce, d.Unmap)
	}
	if d.Total.Count != n || d.Total.Min != mapped+reduced+unmapped || d.Total.Mean != mean ||
		d.Total.P99 != d.Total.Min || d.CPUNs != 10_000 {
		t.Errorf("%+v, %d ns of CPU", d.Total, d.CPUNs)
	}
	if took != n*mean {
		t.Errorf("%d iterations took %d ns, want %d: barriers, filling and comparing are not measured", n, took, n*mean)
	}
	noise := disturbed(times)
	if noise.Taken != 0.2 || noise.Verdict != reports.VerdictDisturbed || noise.Server.Segments != 4000 {
		t.Errorf("a rank that waited for 0.2 of its window: %v of %+v", noise, noise.Server)
	}
	if want := float64(size) * 2 * 3 / 4 / mean * 1e9; d.BusBytesPerSecond != want {
		t.Errorf("%v bytes a second, want %v", d.BusBytesPerSecond, want)
	}
}

// As many iterations are measured as fill the window of the slowest rank, within bounds, whatever a rank says.
func TestIterationsFillTheWindow(t *testing.T) {
	for _, c := range []struct {
		ns   []int64 // of 3 iterations, by rank
		want int
	}{
		{[]int64{100_000, 300_000}, 1000},
		{[]int64{300_000, 100_000}, 1000},
		{[]int64{1 << 40, 1}, leastMeasured},
		{[]int64{3, 3}, mostMeasured},
		{[]int64{0, -5}, mostMeasured},
	} {
		var times []*Times
		for _, ns := range c.ns {
			times = append(times, &Times{Window: ns})
		}
		if got := fit(100*time.Millisecond, 3, times); got != c.want {
			t.Errorf("3 iterations in %d ns: %d fill 100 ms, want %d", c.ns, got, c.want)
		}
	}
}

func TestSchemaHasEveryMember(t *testing.T) { reporttest.Described(t, results) }

// What everything takes, ns.
const maps, meets, reduces, unmaps = 300, 1100, 700, 200

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

// The meeting before an all-reduce is in no time; of fresh buffers two are mapped and unmapped.
func TestScriptedIterations(t *testing.T) {
	cpu := cpuTime
	defer func() { cpuTime = cpu }()
	for _, fresh := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			cpuTime = func() int64 { return int64(time.Since(began)) * 3 / 4 }
			const n = 40
			w := &work{Run: &Run{Bytes: 4096, Fresh: fresh, Warmup: 2, Iterations: n, Verify: true, Seed: 3},
				s: &server{hello: Hello{Config: mesh.Config{Size: 1}}}, m: alone{}, arm: scriptedArm{}}
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
