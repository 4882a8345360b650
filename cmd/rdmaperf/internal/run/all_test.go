package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/hol"
)

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
