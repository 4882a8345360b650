package run

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
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

// Sessions of a stack that polls while nobody calls end with each slice; all others stay open.
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

// A group that is late takes time from those behind it, in proportion to what they planned.
func TestALateRunSharesTheTimeThatIsLeft(t *testing.T) {
	now := time.Now()
	s := schedule{end: now.Add(40 * time.Second),
		shares: []time.Duration{10 * time.Second, 10 * time.Second, 20 * time.Second}}
	for _, k := range []struct {
		group      int
		late, want time.Duration
	}{{0, 0, 10 * time.Second}, {1, 10 * time.Second, 20 * time.Second}, {1, 16 * time.Second, 24 * time.Second},
		{2, 30 * time.Second, 40 * time.Second}} {
		if got := s.until(k.group, now.Add(k.late)).Sub(now); (got - k.want).Abs() > time.Millisecond {
			t.Errorf("group %d, which begins after %v: until %v, want %v", k.group, k.late, got, k.want)
		}
	}
}

// Rounds are left out where the next one would end too late, and never more than the intervals need.
func TestRoundsAreLeftOutWhereTheyWouldEndTooLate(t *testing.T) {
	began := time.Now()
	for _, k := range []struct {
		least, done int
		took        time.Duration
		want        bool
	}{
		{11, 12, 6 * time.Second, false}, // 0.5 s each, of 7 s
		{11, 12, 6600 * time.Millisecond, true},
		{11, 10, 20 * time.Second, false}, // too few
		{0, 12, 20 * time.Second, false},  // a number of rounds that was asked for
	} {
		m := &runner{least: k.least}
		if got := m.enough(k.done, began, began.Add(k.took), began.Add(7*time.Second)); got != k.want {
			t.Errorf("%d of at least %d rounds in %v: enough %v", k.done, k.least, k.took, got)
		}
	}
}

// A stack that makes no progress ends alone, and the run ends with exit code 1 and the cause. A point that a stack
// cannot do is left out. What concerns all, and the last stack's end, end the run as they are.
func TestARunGoesOnWithoutAStackThatEnded(t *testing.T) {
	tr, err := new(stackspec.Set).Open("tcp")
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	failed := func(code int) error {
		return &reports.ExitError{Code: code, Operation: "measure", Err: errors.New("the cause")}
	}
	var stderr bytes.Buffer
	a, b := &arm{tr: tr}, &arm{tr: tr}
	m := &runner{o: &Options{}, stderr: &stderr, doc: &reports.Document{}, arms: []*arm{a, b}}
	on := func(a *arm, err error) (*turn, error) {
		x := &turn{m: m, a: a, pt: engine.Point{Workload: "latency", Op: "send", Size: 64}}
		return x, m.goOn(context.Background(), x, err)
	}

	for _, code := range []int{reports.ExitFailed, reports.ExitCorruption, reports.ExitUsage, reports.ExitInterrupted} {
		if _, err := on(a, failed(code)); reports.Code(err) != code || a.lost {
			t.Errorf("code %d: %v, lost %v", code, err, a.lost)
		}
	}
	x, err := on(a, failed(reports.ExitNotRun))
	if err != nil || !x.unfit || a.lost || reports.Code(m.ended()) != reports.ExitNotRun {
		t.Errorf("a point that it cannot do: %v, unfit %v, lost %v, in the end %v", err, x.unfit, a.lost, m.ended())
	}
	m.doc.Results = []reports.Result{{}}
	if err := m.ended(); err != nil {
		t.Errorf("a run with results, and a point left out: %v", err)
	}
	if _, err := on(a, failed(reports.ExitPeer)); err != nil || !a.lost || b.lost {
		t.Errorf("no progress: %v", err)
	}
	if err := m.ended(); reports.Code(err) != reports.ExitFailed || !strings.Contains(err.Error(), "the cause") {
		t.Errorf("in the end: %v", err)
	}
	if want := "Left out: latency send 64 B over tcp, the cause."; strings.Count(stderr.String(), want) != 2 {
		t.Errorf("stderr:\n%s", stderr.String())
	}
	if _, err := on(b, failed(reports.ExitPeer)); reports.Code(err) != reports.ExitPeer {
		t.Errorf("the last stack: %v", err)
	}
}

func TestWindowsOfAllFitTheirTime(t *testing.T) {
	for _, points := range []int{7, 21, 28} {
		m := &runner{o: &Options{}, raw: &rawOptions{},
			p: &runPlan{chooseTime: true, base: engine.Plan{Duration: time.Second}}}
		for range 7 {
			a := &arm{}
			for range points / 7 {
				a.plan.Points = append(a.plan.Points, engine.Point{Workload: "latency", Op: "send", Size: 64},
					engine.Point{Workload: "hol", Op: "write", Size: 1 << 20})
			}
			m.arms = append(m.arms, a)
		}
		m.p.points = m.arms[0].plan.Points
		total := m.cut()
		w := m.arms[0].plan.Duration
		if total > 45*time.Second || w < leastAll || w > mostWindow {
			t.Errorf("%d points a stack: %v with windows of %v", points/7*2, total, w)
		}
	}
}

func TestFewPointsKeepTheEnds(t *testing.T) {
	var points []engine.Point
	for _, n := range []int{64, 4096, 1 << 20} {
		points = append(points, engine.Point{Workload: "throughput", Op: "write", Size: n},
			engine.Point{Workload: "latency", Op: "send", Size: n / 2})
	}
	var got []int
	for _, pt := range fewPoints(points) {
		got = append(got, pt.Size)
	}
	if want := []int{64, 32, 1 << 20, 1 << 19}; !slices.Equal(got, want) {
		t.Errorf("sizes %v, want %v", got, want)
	}
}

// What takes long is announced where there are several stacks, and what takes a moment is not.
func TestTheTimeOfALongRunIsAnnounced(t *testing.T) {
	two := []*arm{{spec: "tcp"}, {spec: "iwarp"}}
	for _, c := range []struct {
		arms     []*arm
		total    time.Duration
		infinite bool
		want     string
	}{
		{two, 95 * time.Second, false, "Measures 2 stacks side by side, in about 1m35s: tcp, iwarp.\n"},
		{two[:1], 95 * time.Second, false, ""},
		{two, 19 * time.Second, false, ""},
		{two, 95 * time.Second, true, ""},
	} {
		var b strings.Builder
		m := &runner{o: &Options{infinite: c.infinite}, p: &runPlan{}, arms: c.arms, total: c.total, stderr: &b}
		for range 2 {
			m.announceLong()
		}
		if b.String() != c.want {
			t.Errorf("%v, infinite %v: %q, want %q", c.total, c.infinite, b.String(), c.want)
		}
	}
}

// What is counted has no time of its own, and a gigabyte under way is no overflow: a plan takes what comes of it.
func TestTheTimeOfARunIsNotNegative(t *testing.T) {
	for _, p := range []engine.Plan{
		{Iterations: 200, WarmupDuration: time.Second, Points: []engine.Point{{Workload: "locks"}}},
		{Duration: time.Second, Points: []engine.Point{{Workload: "throughput", Op: "write", Size: 1 << 30}}},
	} {
		if total := planned(p); total < 0 || total > time.Hour {
			t.Errorf("%+v: %v", p.Points, total)
		}
	}
}

// Sixteen messages of 4 MiB under way take a time of their own, which is announced: 24 ms a window at 2400 MiB/s.
func TestTheTimeOfLargeMessagesIsPlanned(t *testing.T) {
	of := func(size int) time.Duration {
		return planned(engine.Plan{Duration: time.Second,
			Points: []engine.Point{{Workload: "throughput", Op: "write", Size: size}}})
	}
	if more := of(4<<20) - of(1<<20); more < 200*time.Millisecond || more > 300*time.Millisecond {
		t.Errorf("12 rounds take %v more", more)
	}
}

// planned is what 12 rounds of a plan on one stack take.
func planned(p engine.Plan) time.Duration {
	m := &runner{o: &Options{rounds: 12}, raw: &rawOptions{}, arms: []*arm{{plan: p}}}
	m.p = &runPlan{base: p, points: p.Points}
	return m.cut()
}

// What large messages take is known before the run: memory of the largest, time of all, and of this machine alone.
func TestWhatLargeMessagesTakeIsAnnounced(t *testing.T) {
	points := []engine.Point{{Workload: "latency", Size: 1 << 30}, {Workload: "latency", Size: 64}}
	m := &runner{o: new(Options), arms: []*arm{{plan: engine.Plan{Points: points}}, {plan: engine.Plan{Points: points}}}}
	if memory, took := m.large(); memory != 6<<30 || took.Round(time.Second) != 41*time.Second {
		t.Errorf("%d bytes, %v, want 6 GiB, 41 s", memory, took)
	}
	m.o.host = "far"
	if memory, _ := m.large(); memory != 3<<30 {
		t.Errorf("with a HOST %d bytes, want 3 GiB", memory)
	}
	m.arms = []*arm{{plan: engine.Plan{Points: points[1:], QPs: 4}}}
	if memory, _ := m.large(); memory != 0 {
		t.Errorf("of 64 bytes %d, want nothing", memory)
	}
}

func TestPlannedTime(t *testing.T) {
	p := &engine.Plan{Duration: time.Second, WarmupDuration: 200 * time.Millisecond}
	for _, c := range []struct {
		pt   engine.Point
		want time.Duration
	}{{engine.Point{}, 1200 * time.Millisecond}, {hol.NewPoint("write", 1<<20, hol.SameQP, hol.Options{}),
		3200 * time.Millisecond}, {engine.Point{Time: time.Minute}, time.Minute}} {
		if got := p.PlannedTime(c.pt); got != c.want {
			t.Errorf("%s: %v, want %v", c.pt, got, c.want)
		}
	}
	if got := (&engine.Plan{Iterations: 5}).PlannedTime(engine.Point{}); got != 0 {
		t.Errorf("counted operations: %v, want unknown", got)
	}
}
