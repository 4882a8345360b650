package run

import (
	"fmt"
	"io/fs"
	"slices"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/placement"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
)

// place chooses CPUs for --pin auto, keeps the process on the adapter's NUMA node, and prints remarks on stderr; the
// choice itself where an adapter had a part in it, or with --pin or --verbose. root has sysfs.
func (m *runner) place(root fs.FS) error {
	say := func(format string, args ...any) {
		if !m.o.quiet {
			fmt.Fprintf(m.stderr, "pin: "+format+"\n", args...)
		}
	}
	cpus := placement.Read(root, engine.AllowedCPUs())
	device, node := m.deviceNode(root)
	if !m.p.autoPin {
		if m.p.base.ClientCPU < 0 {
			return nil // --pin none
		}
		server := m.p.base.ServerCPU
		if m.o.host != "" {
			server = -1 // of another machine
		}
		for _, w := range append(cpus.Remarks(m.p.base.ClientCPU, server), cpus.Far(device, node, m.p.base.ClientCPU,
			server)) {
			if w != "" {
				say("! %s", w)
			}
		}
		return nil
	}
	choice := cpus.Choose(device, node)
	if choice.Keep != nil {
		if err := placement.Keep(choice.Keep); err != nil {
			return failed("pin", err, "--pin none")
		}
		say("this process and its memory stay on node %d, where %s is: CPUs %s", node, device, ranges(choice.Keep))
	}
	if because := m.unpinned(); because != "" {
		if m.o.verbose {
			say("no thread is pinned: %s", because)
		}
	} else {
		m.p.base.ClientCPU, m.p.base.ServerCPU = choice.Client, choice.Server
		if device != "" || m.o.pinNamed || m.o.verbose {
			say("%s", choice)
		}
	}
	for _, w := range choice.Warnings {
		say("! %s", w)
	}
	return nil
}

func (m *runner) unpinned() string {
	many := slices.ContainsFunc(m.p.points, func(pt engine.Point) bool { return metaOf(pt).OwnThreads })
	switch {
	case m.o.host != "":
		return "with a HOST, --pin CLIENT,SERVER says where"
	case many:
		return "a workload has threads of its own"
	case m.p.base.Threads > 1:
		return "there are several threads"
	case m.p.base.Polling == engine.PollingEvent:
		return "threads that sleep go where there is room"
	}
	return ""
}

// deviceNode is the first device of the stacks that sysfs knows the node of, else the first; "" and -1 without any.
func (m *runner) deviceNode(root fs.FS) (device string, node int) {
	node = -1
	for _, a := range m.arms {
		layers, err := stackspec.Parse(a.spec)
		if err != nil || layers[len(layers)-1].Device == "" {
			continue
		}
		name := layers[len(layers)-1].Device
		if device == "" {
			device = name
		}
		if n := placement.NodeOf(root, name); n >= 0 {
			return name, n
		}
	}
	return device, node
}
