package engine_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/kv"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/tensor"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// rawRun takes all points and keeps what was handed over, in order.
func rawRun(t *testing.T, e enginetest.Ends, plan engine.Plan, limit int) ([]reports.Result,
	map[string][]reports.Sample) {
	t.Helper()
	c, err := enginetest.Client(t, e, plan)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string][]reports.Sample{}
	var results []reports.Result
	for i, pt := range plan.Points {
		c.KeepSamples(limit, func(s *engine.Samples) error {
			return s.Each(func(v reports.Sample) error {
				kept[pt.String()+" "+s.Set] = append(kept[pt.String()+" "+s.Set], v)
				return nil
			})
		})
		res, err := enginetest.First(c.Run(t.Context(), i))
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, res)
	}
	return results, kept
}

// agree holds raw samples against a histogram: recorded anew they are the same, ranked within its resolution.
func agree(t *testing.T, name string, raw []int64, want *reports.Latency) {
	t.Helper()
	r := reports.NewRecorder()
	for _, ns := range raw {
		r.Record(ns)
	}
	got := r.Snapshot()
	if got.Count != want.Count || got.Min != want.Min || got.Max != want.Max || got.Mean != want.Mean ||
		got.StdDev != want.StdDev || got.HDR != want.HDR {
		t.Errorf("%s: the samples give %+v, the result has %+v", name, got, *want)
	}
	slices.Sort(raw)
	if float64(raw[0]) != want.Min || float64(raw[len(raw)-1]) != want.Max {
		t.Errorf("%s: samples from %d to %d, want %v to %v", name, raw[0], raw[len(raw)-1], want.Min, want.Max)
	}
	for _, p := range want.Percentiles() {
		rank := max(int(math.Ceil(p.Percent/100*float64(len(raw)))), 1)
		if exact := float64(raw[rank-1]); math.Abs(p.Ns-exact) > 0.001*exact+1 {
			t.Errorf("%s: %s is %v, of the samples %v", name, p.Name, p.Ns, exact)
		}
	}
}

// The raw samples are those of the histogram: every workload of sessions, several workers.
func TestRawSamplesAgreeWithTheHistogram(t *testing.T) {
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64},
		engine.Point{Workload: latency.Name, Op: "write", Size: 64, Rate: 20000},
		hol.NewPoint("write", 4096, hol.SameQP, hol.Options{ProbeInterval: 50 * time.Microsecond}),
		engine.Point{Workload: throughput.Name, Op: "write", Size: 64})
	plan.QPs, plan.Threads, plan.WarmupIterations = 2, 2, 20
	results, kept := rawRun(t, enginetest.TcpEnds, plan, 10_000)
	for i, r := range results {
		agreeAll(t, plan.Points[i].String(), &r, kept, r.Threads)
	}
}

// Those of calls are, too, in both loops: a thread is a goroutine.
func TestRawSamplesOfCallsAgreeWithTheHistogram(t *testing.T) {
	var points []engine.Point
	for _, pt := range []engine.Point{enginetest.RpcPoint(engine.CallUnary, 64, 9),
		enginetest.RpcPoint(engine.CallStream, 64, 64), enginetest.RpcPoint(engine.CallOneway, 64, 8), sampleKV("f"),
		tensor.TensorPoint(tensor.TensorPull, 4096)} {
		pt.QPs, pt.Outstanding = 2, 3
		points = append(points, pt)
		if pt.Call != engine.CallOneway {
			pt.Rate = 3000
			points = append(points, pt)
		}
	}
	many := enginetest.RpcPoint(engine.CallUnary, 1, 1) // goroutines share histograms, not samples
	many.Outstanding = drive.MaxTallies
	points = append(points, many)
	for _, name := range []string{"tcp", "fused mem"} {
		t.Run(name, func(t *testing.T) {
			plan := enginetest.QuickPlan(points...)
			plan.Iterations, plan.WarmupIterations, plan.Depth = 100, 10, 1
			results, kept := rawRun(t, enginetest.CarriersUnderTest()[name], plan, 10_000)
			for i, r := range results {
				pt := points[i]
				agreeAll(t, pt.String(), &r, kept, max(pt.QPs, 1)*pt.Outstanding)
				if timed := pt.Call != engine.CallOneway; (r.Latency != nil) != timed ||
					(len(r.RawSamples) == 1) != timed || r.Parameters["raw_limit"] != 10_000 {
					t.Errorf("%s: latency %v, samples %+v, limit %v", pt, r.Latency, r.RawSamples,
						r.Parameters["raw_limit"])
				}
				if (r.LatencyService != nil) != (pt.Rate > 0) {
					t.Errorf("%s: service times %v", pt, r.LatencyService)
				}
			}
		})
	}
}

// agreeAll holds all raw samples of a result against it. Those of a window with threads workers are of all of them.
func agreeAll(t *testing.T, name string, r *reports.Result, kept map[string][]reports.Sample, threads int) {
	t.Helper()
	sets := map[string]*reports.Latency{}
	switch {
	case r.Latency != nil:
		sets[reports.SamplesLatency] = r.Latency
	case hol.Of(r) != nil:
		sets[reports.SamplesProbeAlone], sets[reports.SamplesProbeLoaded] = &hol.Of(r).ProbeAlone,
			&hol.Of(r).ProbeLoaded
	}
	if len(r.RawSamples) != len(sets) {
		t.Errorf("%s: the result names %+v, want %d sets", name, r.RawSamples, len(sets))
	}
	for _, named := range r.RawSamples {
		samples, want := kept[name+" "+named.Set], sets[named.Set]
		if want == nil || named.Count != want.Count || named.Dropped != 0 || named.Limit != 10_000 ||
			int64(len(samples)) != want.Count {
			t.Errorf("%s: %+v with %d samples, want %+v", name, named, len(samples), want)
			continue
		}
		var ns, service []int64
		seen := map[int]bool{}
		last := int64(-1)
		for _, s := range samples {
			if s.OffsetNs < last || s.OffsetNs < 0 || named.Set != reports.SamplesProbeAlone &&
				s.OffsetNs > r.DurationNs {
				t.Fatalf("%s %s: sample %+v after %d in a window of %d ns", name, named.Set, s, last, r.DurationNs)
			}
			last = s.OffsetNs
			seen[s.Thread] = true
			ns, service = append(ns, s.Ns), append(service, s.ServiceNs)
		}
		agree(t, name+" "+named.Set, ns, want)
		if r.LatencyService != nil {
			agree(t, name+" service", service, r.LatencyService)
		}
		if hol.Of(r) == nil && len(seen) != threads {
			t.Errorf("%s: samples of %d threads, want %d", name, len(seen), threads)
		}
	}
}

// What does not fit is counted, and the histogram has it all the same. All callers of a point share the limit.
func TestRawSamplesBeyondTheLimitAreCounted(t *testing.T) {
	calls, fused := enginetest.RpcPoint(engine.CallUnary, 64, 64), enginetest.CarriersUnderTest()["fused mem"]
	calls.QPs, calls.Outstanding = 2, 4
	for _, c := range []struct {
		ends  enginetest.Ends
		pt    engine.Point
		limit int64
	}{{enginetest.MemEnds, engine.Point{Workload: latency.Name, Op: "send", Size: 64}, 101}, {fused, calls, 3},
		{fused, calls, 101}} {
		plan := enginetest.QuickPlan(c.pt)
		plan.QPs, plan.Threads, plan.Depth = 2, 2, 1
		results, kept := rawRun(t, c.ends, plan, int(c.limit))
		named := results[0].RawSamples[0]
		if want := (reports.RawSamples{Set: reports.SamplesLatency, Count: c.limit, Dropped: 600 - c.limit,
			Limit: c.limit}); named != want || results[0].Latency.Count != 600 {
			t.Errorf("%s: %+v of %d samples, want %+v of 600", c.pt, named, results[0].Latency.Count, want)
		}
		if n := len(kept[c.pt.String()+" latency"]); int64(n) != c.limit {
			t.Errorf("%s: %d samples handed over, want %d", c.pt, n, c.limit)
		}
	}
}

// One memory is shared out anew for every phase, whatever the number of workers.
func TestRawSamplesHaveOneMemory(t *testing.T) {
	s := &engine.RawStore{Limit: 1000}
	defer s.Free()
	first := &s.Share(1)[0].Samples[0]
	for _, n := range []int{7, 1, 1024, 64} {
		room := 0
		for i, b := range s.Share(n) {
			if room += len(b.Samples); b.N != 0 || b.Dropped != 0 || cap(b.Samples) != len(b.Samples) ||
				i == 0 && &b.Samples[0] != first {
				t.Fatalf("worker %d of %d: %d samples of room %d, %d dropped, at %p, want an empty one from %p", i, n,
					b.N, cap(b.Samples), b.Dropped, b.Samples, first)
			}
			for range len(b.Samples) + 1 {
				b.Take(1, 2, 3)
			}
		}
		if room != 1000 {
			t.Errorf("%d workers have room for %d samples, want 1000", n, room)
		}
	}
}

// A full disk ends the point.
func TestRawSamplesThatCannotBeTakenEndThePoint(t *testing.T) {
	for _, c := range []struct {
		e  enginetest.Ends
		pt engine.Point
	}{{enginetest.MemEnds, engine.Point{Workload: latency.Name, Op: "send", Size: 64}},
		{enginetest.CarriersUnderTest()["tcp"], enginetest.RpcPoint(engine.CallUnary, 64, 64)}} {
		plan := enginetest.QuickPlan(c.pt)
		plan.Depth = 1
		cl, err := enginetest.Client(t, c.e, plan)
		if err != nil {
			t.Fatal(err)
		}
		full := errors.New("disk full")
		cl.KeepSamples(1000, func(*engine.Samples) error { return full })
		if r, err := enginetest.First(cl.Run(t.Context(), 0)); !errors.Is(err, full) || r.Operations != 300 ||
			r.Errors != 1 {
			t.Errorf("%s: error %v with %d operations and %d errors, want the disk and what was measured", c.pt, err,
				r.Operations, r.Errors)
		}
	}
}

func TestRawSamplesAllocateNothing(t *testing.T) {
	client, server := enginetest.Pair(t, enginetest.MemEnds,
		enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: transports.KindSend.String(), Size: 8}),
		ends[latency.Name].shape, ends[latency.Name].sides)
	enginetest.Once(t, client, server, 1, engine.Limits{Ops: 100})
	client.Raw = &engine.RawStore{Limit: 15_000}
	release := engine.HoldCollector()
	defer release()
	out := enginetest.Once(t, client, server, 2, engine.Limits{Ops: 20_000})
	if w := client.Workers[0]; w.Raw.N != 15_000 || w.Raw.Dropped != 5_000 {
		t.Errorf("%d samples and %d dropped, want 15000 and 5000", w.Raw.N, w.Raw.Dropped)
	}
	if out.Usage.Allocations > enginetest.PhaseAllocations {
		t.Errorf("%d allocations in 20000 operations, want none of the loop", out.Usage.Allocations)
	}
}

func sampleKV(mix string) engine.Point {
	return kv.KVPoint(kv.KVLoad{Mix: mix, Records: 300, Fields: 3, FieldBytes: 40, MaxScan: 10})
}
