package run

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
)

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
