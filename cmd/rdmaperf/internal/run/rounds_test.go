package run

import (
	"context"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
)

func TestSlicesOfFewSamplesGrow(t *testing.T) {
	const slice = 100 * time.Millisecond
	for _, c := range []struct {
		samples int64
		rounds  int
		want    time.Duration // 0: as planned
	}{{1000, 4, 0}, {30, 4, 0}, {15, 4, 2 * slice}, {1, 4, growth * slice}, {0, 4, growth * slice}, {1, 1, 0}} {
		turn := &turn{m: &runner{rounds: c.rounds}, a: &arm{plan: engine.Plan{Duration: slice}}, c: new(engine.Client)}
		turn.taken = 1
		results := []reports.Result{{Latency: &reports.Latency{Count: 1 << 20}}}
		results[0].Latencies = []reports.NamedLatency{{Name: "loaded", Latency: &reports.Latency{Count: c.samples}}}
		turn.grow(results)
		if turn.c.Slice != c.want {
			t.Errorf("%d samples in the first of %d slices: then %v, want %v", c.samples, c.rounds, turn.c.Slice, c.want)
		}
		turn.c.Slice, turn.taken = 7, 2
		if turn.grow(results); turn.c.Slice != 7 {
			t.Errorf("a later slice changed the length to %v", turn.c.Slice)
		}
	}
}

// Points that differ in nothing but the variant take turns, and each on all stacks.
func TestVariantsAndStacksTakeTurns(t *testing.T) {
	hol := func(variant string) engine.Point {
		return engine.Point{Workload: "hol", Op: "write", Size: 1 << 20, Variant: variant, Words: "hol " + variant}
	}
	points := []engine.Point{{Workload: "latency", Op: "send", Size: 64}, hol("same-qp"), hol("two-qp"),
		{Workload: "latency", Op: "send", Size: 4096}}
	p := &runPlan{points: points}
	if g := p.groups(); len(g) != 3 || len(g[1]) != 2 {
		t.Fatalf("groups %v", g)
	}
	m := &runner{p: p, arms: []*arm{{spec: "tcp", plan: engine.Plan{Points: points}},
		{spec: "iwarp", plan: engine.Plan{Points: points[:2]}}}}
	var got string
	for _, t := range m.turns(p.groups()[1]) {
		got += " " + t.a.spec + " " + t.pt.Variant
	}
	if want := " tcp same-qp iwarp same-qp tcp two-qp"; got != want {
		t.Errorf("turns%s, want%s", got, want)
	}
}

// A stack whose connections poll while nobody calls would take the CPUs from the stacks whose turn it is: its sessions
// end with each slice. All others stay open.
func TestSessionsThatPollIdleEndWithTheirSlice(t *testing.T) {
	for spec, want := range map[string]bool{"grpc(dropin,bp)+iwarp": true, "grpc(fused,bp)+sched+iwarp": true,
		"grpc(dropin)+iwarp": false, "grpc(dropin,event)+iwarp": false, "iwarp": false, "grpc(tcp)": false} {
		stopped := false
		x := &turn{m: &runner{rounds: 2}, a: &arm{spec: spec}, c: new(engine.Client),
			next: func() ([]reports.Result, error, bool) { return nil, nil, true }, stop: func() { stopped = true }}
		if _, err := x.slice(context.Background()); err != nil || stopped != want || x.ended != want {
			t.Errorf("%s: stopped %v, ended %v, error %v, want %v", spec, stopped, x.ended, err, want)
		}
	}
}
