package run

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/impair"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == NeighbourChild {
		Spin()
	}
	os.Exit(m.Run())
}

func TestNeighboursMultiplyThePoints(t *testing.T) {
	points := []engine.Point{{Op: "send"}, {Op: "write"}}
	got, err := besideNeighbours(points, "0, 2")
	if err != nil {
		t.Fatal(err)
	}
	want := []engine.Point{{Op: "send"}, {Op: "send", Neighbours: 2}, {Op: "write"}, {Op: "write", Neighbours: 2}}
	if !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
	for _, bad := range []string{"", "-1", "x", "1,1", "4097", "1.5"} {
		if _, err := besideNeighbours(points, bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// cpuTime is what the processes ran, in ticks of the scheduler (proc_pid_stat(5)).
func cpuTime(t *testing.T, n neighbours) (sum []int) {
	for _, c := range n {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(c.Process.Pid) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
		ticks, err := strconv.Atoi(fields[11])
		if err != nil {
			t.Fatal(err)
		}
		sum = append(sum, ticks)
	}
	return sum
}

// So many as asked for spin, no others, and none between slices; at the end all are gone.
func TestNeighboursSpinBesideASliceOnly(t *testing.T) {
	n, err := startNeighbours([]engine.Point{{Neighbours: 1}, {Neighbours: 2}})
	if err != nil {
		t.Fatal(err)
	}
	defer n.end()
	n.spin(1)
	for end := time.Now().Add(30 * time.Second); cpuTime(t, n)[0] < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the neighbour does not spin")
		}
	}
	n.rest()
	time.Sleep(5 * time.Millisecond) // the signal arrives at its next tick
	before := cpuTime(t, n)
	time.Sleep(50 * time.Millisecond)
	if after := cpuTime(t, n); !slices.Equal(before, after) || after[1] > 1 {
		t.Errorf("neighbours ran %v ticks, and %v a moment later", before, after)
	}
	n.end()
	if len(n) != 2 || n[1].ProcessState == nil {
		t.Errorf("%v", n)
	}
}

// TestHolderChild holds the name that the environment has until its stdin ends.
func TestHolderChild(t *testing.T) {
	name := os.Getenv("RDMAPERF_HOLD")
	if name == "" {
		return // it is only the child of TestTheSecondOfTwoRunsSaysSo
	}
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	fmt.Println("held")
	os.Stdin.Read(make([]byte, 1))
}

func TestTheSecondOfTwoRunsSaysSo(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	name := fmt.Sprintf("@rdmaperf/test-%d", os.Getpid())
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))

	first := hold(ctx, log, name)
	hold(ctx, log, name).Close() // of the same process: no second run
	if out.Len() > 0 {
		t.Errorf("alone it says %q", &out)
	}
	first.Close()

	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestHolderChild$")
	child.Env = append(os.Environ(), "RDMAPERF_HOLD="+name)
	stdin, _ := child.StdinPipe()
	stdout, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if line := make([]byte, 5); true {
		if _, err := stdout.Read(line); err != nil || string(line) != "held\n" {
			t.Fatalf("the child says %q, %v", line, err)
		}
	}
	hold(ctx, log, name).Close()
	if want := fmt.Sprintf("process=%d", child.Process.Pid); !strings.Contains(out.String(), want) {
		t.Errorf("beside another it says %q, want %q", &out, want)
	}
	stdin.Close()
	child.Wait()
	out.Reset()
	hold(ctx, log, name).Close()
	if out.Len() > 0 {
		t.Errorf("behind the other it says %q", &out)
	}
}

// pinned runs place on a made-up machine and returns what it chose and said.
func pinned(t *testing.T, root fstest.MapFS, change func(o *Options, p *runPlan)) (engine.Plan, string) {
	t.Helper()
	var stderr bytes.Buffer
	p := &runPlan{autoPin: true, base: engine.Plan{ClientCPU: -1, ServerCPU: -1, Threads: 1, Polling: "busy"}}
	m := &runner{o: &Options{}, p: p, stderr: &stderr, arms: []*arm{{spec: "verbs:mlx5_0"}}}
	change(m.o, p)
	if err := m.place(root); err != nil {
		t.Fatal(err)
	}
	return p.base, stderr.String()
}

// twoNodes puts every CPU that is allowed here on node 1, and a device on the given one.
func twoNodes(device string) fstest.MapFS {
	return fstest.MapFS{
		"sys/devices/system/node/node0/cpulist":           {Data: []byte("4000-4001\n")},
		"sys/devices/system/node/node1/cpulist":           {Data: []byte("0-3999\n")},
		"sys/class/infiniband/mlx5_0/device/numa_node":    {Data: []byte(device + "\n")},
		"sys/devices/system/cpu/cpu0/cpufreq/other_thing": {Data: []byte("x\n")},
	}
}

func TestPinSaysWhatItChoseAndWhy(t *testing.T) {
	if len(engine.AllowedCPUs()) < 2 {
		t.Skip("fewer than two CPUs may be used here: there is nothing to choose")
	}
	base, said := pinned(t, twoNodes("1"), func(*Options, *runPlan) {})
	if base.ClientCPU < 0 || base.ServerCPU < 0 || base.ClientCPU == base.ServerCPU ||
		!strings.Contains(said, "pin: this process and its memory stay on node 1, where mlx5_0 is: CPUs ") ||
		!strings.Contains(said, ": the last two of node 1, where mlx5_0 is\n") {
		t.Errorf("CPUs %d and %d, said:\n%s", base.ClientCPU, base.ServerCPU, said)
	}
	base, said = pinned(t, twoNodes("0"), func(*Options, *runPlan) {})
	if base.ClientCPU < 0 || !strings.Contains(said, "the last two allowed\n") ||
		!strings.Contains(said, "pin: ! mlx5_0 is on NUMA node 0, and none of its CPUs may be used here") {
		t.Errorf("the adapter's node is not allowed: CPU %d, said:\n%s", base.ClientCPU, said)
	}
	base, said = pinned(t, twoNodes("0"), func(_ *Options, p *runPlan) {
		p.autoPin, p.base.ClientCPU, p.base.ServerCPU = false, 1, 0
	})
	if base.ClientCPU != 1 || !strings.Contains(said, "CPU 1 is on NUMA node 1 and mlx5_0 on node 0") {
		t.Errorf("CPUs of the user's: %d, said:\n%s", base.ClientCPU, said)
	}
	for name, change := range map[string]func(o *Options, p *runPlan){
		"several threads":    func(o *Options, p *runPlan) { o.verbose, p.base.Threads = true, 2 },
		"with a HOST":        func(o *Options, _ *runPlan) { o.verbose, o.host = true, "there" },
		"threads that sleep": func(o *Options, p *runPlan) { o.verbose, p.base.Polling = true, engine.PollingEvent },
	} {
		if base, said := pinned(t, fstest.MapFS{}, change); base.ClientCPU != -1 ||
			!strings.Contains(said, "pin: no thread is pinned: ") || !strings.Contains(said, name) {
			t.Errorf("%s: CPU %d, said:\n%s", name, base.ClientCPU, said)
		}
	}
	if base, said := pinned(t, twoNodes("1"), func(o *Options, p *runPlan) {
		o.quiet, p.autoPin = true, false
	}); said != "" || base.ClientCPU != -1 {
		t.Errorf("--pin none --quiet: CPU %d, said %q", base.ClientCPU, said)
	}
}

func TestImpairmentsArePathsInTheOrderGiven(t *testing.T) {
	paths, err := badPaths([]string{"delay=2ms", "loss=0,0.1%,0.05", "seed=9"})
	if err != nil {
		t.Fatal(err)
	}
	want := []badPath{
		{name: "delay=2ms,loss=0", cfg: impair.Config{Delay: 2 * time.Millisecond, Seed: 9}},
		{name: "delay=2ms,loss=0.1%", cfg: impair.Config{Delay: 2 * time.Millisecond, Loss: 0.001, Seed: 9}},
		{name: "delay=2ms,loss=0.05", cfg: impair.Config{Delay: 2 * time.Millisecond, Loss: 0.05, Seed: 9}},
	}
	if len(paths) != len(want) {
		t.Fatalf("%+v", paths)
	}
	for i := range want {
		if paths[i] != want[i] {
			t.Errorf("%+v, want %+v", paths[i], want[i])
		}
	}
	for _, bad := range [][]string{{"loss"}, {"loss=2"}, {"loss=100%"}, {"loss=-1"}, {"noise=1"}, {"delay=-1s"},
		{"stop=1m"}, {"cut=-1s"}} {
		if _, err := badPaths(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

// TestPulsesHarmAndMendInTurns: whoever ends them finds nothing harmed.
func TestPulsesHarmAndMendInTurns(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var said []bool
	n := pulse(ctx, time.Millisecond, func(on bool) {
		said = append(said, on)
		if len(said) == 3 {
			cancel()
		}
	})
	if n != 1 || len(said) != 4 || said[3] {
		t.Errorf("%d whole pulses, harmed %v", n, said)
	}
	if n := pulse(ctx, 0, func(bool) { t.Error("harmed") }); n != 0 {
		t.Errorf("%d pulses of none", n)
	}
}
