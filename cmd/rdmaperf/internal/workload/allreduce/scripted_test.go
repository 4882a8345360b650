package allreduce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/arms"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/mesh"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/allreduce/steps"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/workloadtest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/reports/reporttest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

type link struct {
	in   <-chan []byte
	out  chan<- []byte
	bend func(*Answer) // what arrives, where it is an answer
}

func (l link) Send(v any) error {
	text, err := json.Marshal(v)
	l.out <- text
	return err
}

func (l link) Receive(ctx context.Context, v any) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case text, ok := <-l.in:
		if !ok {
			return io.EOF
		}
		err := json.Unmarshal(text, v)
		if a, is := v.(*Answer); is && l.bend != nil {
			l.bend(a)
		}
		return err
	}
}

// A word that changes between two ranks is a wrong sum, whatever the algorithm and the way.
func TestTamperingIsFoundInSums(t *testing.T) {
	const size, iterations = 24_000, 5
	for _, algorithm := range []string{"ring", "halving", "doubling"} {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/back %v", algorithm, back), func(t *testing.T) {
				workloadtest.Tampered(t, size*iterations, back, func(p *enginetest.Tamper) error {
					_, err := sums(t, p, Run{Algorithm: algorithm, Arm: "cache", Bytes: size, Offload: "none",
						Iterations: iterations, Verify: true, Seed: 7})
					return err
				}, 0.17, 0.52, 0.88)
			})
		}
	}
	if times, err := sums(t, &enginetest.Tamper{T: t, At: 1 << 40}, Run{Algorithm: "ring", Arm: "cache",
		Bytes: size, Offload: "none", Iterations: iterations, Verify: true}); err != nil || len(times) != 2 {
		t.Errorf("where nothing changes: %d ranks, %v", len(times), err)
	}
}

// sums has two ranks without a check of their own add through a proxy.
func sums(t *testing.T, p *enginetest.Tamper, order Run) ([]*Times, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	var ranks sync.WaitGroup
	defer ranks.Wait()
	defer cancel()
	links := make([]Link, 2)
	for i := range links {
		down, up := make(chan []byte, 1), make(chan []byte, 1)
		links[i] = link{in: up, out: down, bend: func(a *Answer) {
			if a.Addr != "" {
				near, err := p.Before(a.Addr)
				if err != nil {
					t.Error(err)
				}
				a.Addr = near
			}
		}}
		ranks.Go(func() {
			_ = serveRank(ctx, link{in: down, out: up}, func(string) (rdma.Device, error) {
				return iwarp.Open(iwarp.Config{NoCRC: true})
			})
			close(up)
		})
	}
	hosts := slices.Repeat([]string{"127.0.0.1"}, len(links))
	g, err := join(ctx, links, hosts, Hello{Stack: "iwarp(nocrc)",
		Config: mesh.Config{Eager: 1024, Segment: 8192, Timeout: 5 * time.Second}})
	if err != nil {
		return nil, err
	}
	return g.run(ctx, order, 10*time.Second)
}

func TestSumsAreCompared(t *testing.T) {
	for _, n := range []int{1, 7, period, period + 1, 3*period + 5} {
		v, sum := make([]float32, n), make([]float32, n)
		const ranks = 3
		for r := range ranks {
			fill(v, 5, 1, r)
			for k := range v {
				sum[k] += v[k]
			}
		}
		if err := compare(sum, 5, ranks, ranks*(ranks-1)/2); err != nil {
			t.Errorf("%d elements: %v", n, err)
		}
		if err := compare(sum, 6, ranks, ranks*(ranks-1)/2); !errors.Is(err, errSum) {
			t.Errorf("%d elements of another iteration: %v", n, err)
		}
		for _, k := range []int{0, n / 2, n - 1} {
			sum[k]++
			if err := compare(sum, 5, ranks, ranks*(ranks-1)/2); !errors.Is(err, errSum) {
				t.Errorf("element %d of %d is wrong: %v", k, n, err)
			}
			sum[k]--
		}
	}
}

// A rank says what is wrong with an order, and ends.
func TestOrdersThatMakeNoSense(t *testing.T) {
	open := func(string) (rdma.Device, error) { return memdev.NewFabric(memdev.Config{}).Open("a") }
	hello := `{"hello":{"stack":"mem","listen":"a:0","rank":0,"size":1,"eager_bytes":8,"segment_bytes":8,"timeout_ns":1000000000}}` + "\n"
	for in, want := range map[string]string{
		`{"run":{"bytes":4}}`: "out of turn",
		hello + hello:         "out of turn",
		hello + `{"run":{"algorithm":"ring","arm":"none","bytes":6,"offload":"none","iterations":1}}`: "1 iterations of 6 bytes",
		hello + `{"run":{"algorithm":"tree","arm":"none","bytes":8,"offload":"none","iterations":1}}`: "no algorithm",
		hello + `{"run":{"algorithm":"ring","arm":"some","bytes":8,"offload":"none","iterations":1}}`: "arm \\\"some\\\"",
		hello + `{"run":{"algorithm":"ring","arm":"none","bytes":8,"offload":"leap","iterations":1}}`: "offload",
	} {
		orders, answers := make(chan []byte, 2), make(chan []byte, 2)
		for line := range strings.Lines(in) {
			orders <- []byte(line)
		}
		close(orders)
		if err := serveRank(t.Context(), link{in: orders, out: answers}, open); err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", in, err)
		}
		close(answers)
		var out []byte
		for a := range answers {
			out = append(out, a...)
		}
		if !strings.Contains(string(out), want) {
			t.Errorf("%s: answered %s, want %s", in, out, want)
		}
	}
}

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
