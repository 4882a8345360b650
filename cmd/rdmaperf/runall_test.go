package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

// Every layer of the table is either measured or left out with a reason.
func TestAllIsEveryStackOfTheTable(t *testing.T) {
	active := []verbs.DeviceInfo{{Name: "rxe0", Ports: []verbs.PortInfo{{Number: 1, Active: true}}}}
	for _, c := range []struct {
		what    string
		devices []verbs.DeviceInfo
		err     error
		want    string
	}{
		{"no device", nil, errors.New("none"), "iwarp,tcp,sched+iwarp,lite+iwarp,grpc(tcp),grpc(dropin)+iwarp,grpc(fused)+iwarp"},
		{"a device", active, nil, "verbs:rxe0,tcp,sched+verbs:rxe0,lite+verbs:rxe0,grpc(tcp),grpc(dropin)+verbs:rxe0,grpc(fused)+verbs:rxe0"},
	} {
		withDevices(t, c.devices, c.err)
		stacks, left := everyStack()
		if got := strings.Join(stacks, ","); got != c.want {
			t.Errorf("%s: %s, want %s", c.what, got, c.want)
		}
		for i := range stackTable {
			e := &stackTable[i]
			measured := slices.ContainsFunc(stacks, func(s string) bool { return strings.HasPrefix(s, e.name) })
			at := slices.IndexFunc(left, func(l leftOut) bool { return strings.HasPrefix(l.stack, e.name) })
			if measured == (at >= 0) || at >= 0 && left[at].why == "" {
				t.Errorf("%s: %s is measured: %v, and left out: %v", c.what, e.name, measured, left)
			}
		}
	}
}

func TestWindowsOfAllFitTheirTime(t *testing.T) {
	for _, points := range []int{7, 21, 28} {
		m := &runner{o: &runOptions{}, p: &runPlan{chooseTime: true}}
		for range 7 {
			a := &arm{}
			for range points / 7 {
				a.plan.Points = append(a.plan.Points, engine.Point{Workload: "latency", Op: "send", Size: 64}, engine.Point{Workload: "hol", Op: "write", Size: 1 << 20})
			}
			m.arms = append(m.arms, a)
		}
		total := m.sizeWindows()
		w := m.arms[0].plan.Duration
		if total > 45*time.Second || w < leastAll || w > mostWindow {
			t.Errorf("%d points a stack: %v with windows of %v", points/7*2, total, w)
		}
	}
}

func TestFewPointsKeepTheEnds(t *testing.T) {
	var points []engine.Point
	for _, n := range []int{64, 4096, 1 << 20} {
		points = append(points, engine.Point{Workload: "throughput", Op: "write", Size: n}, engine.Point{Workload: "latency", Op: "send", Size: n / 2})
	}
	var got []int
	for _, pt := range fewPoints(points) {
		got = append(got, pt.Size)
	}
	if want := []int{64, 32, 1 << 20, 1 << 19}; !slices.Equal(got, want) {
		t.Errorf("sizes %v, want %v", got, want)
	}
}

// all with less to do: stacks that can do none of it are left out, with a reason.
func TestRunAllLeavesOutWhatCannotRun(t *testing.T) {
	r := rdmaperf(t, "run", "--transport", "all", "--workload", "latency", "--op", "read", "-s", "64", "-n", "20", "--warmup", "none", "--no-save", "--format", "json")
	if r.code != 0 {
		t.Fatalf("exit %d, %s", r.code, r.stderr)
	}
	var stacks []string
	for _, res := range document(t, []byte(r.stdout)).Results {
		stacks = append(stacks, res.Stack)
	}
	if len(stacks) != 4 || !strings.HasPrefix(stacks[0], "iwarp") || stacks[1] != "tcp" || !strings.HasPrefix(stacks[2], "sched") || !strings.HasPrefix(stacks[3], "lite") {
		t.Errorf("measured %q", stacks)
	}
	for _, w := range []string{"Measures 4 stacks", "Left out: grpc(tcp), no operation read", "Left out: mem, "} {
		if !strings.Contains(r.stderr, w) {
			t.Errorf("stderr lacks %q:\n%s", w, r.stderr)
		}
	}
}
