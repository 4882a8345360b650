package run

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/placement"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/stackspec"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/values"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/wakeup"
	"github.com/rdmaperf/rdmaperf/reports"
)

// NeighbourChild is the command of a process that stops itself and spins when it is continued.
const NeighbourChild = "neighbour-child"

// mostNeighbours is more than the CPUs of any machine on which their number matters.
const mostNeighbours = 4096

func besideNeighbours(points []engine.Point, list string) (all []engine.Point, err error) {
	var counts []int
	for word := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(word))
		switch {
		case err != nil || n < 0 || n > mostNeighbours:
			return nil, values.Wrong("neighbours", "%q: want numbers of processes from 0 to %d", word, mostNeighbours)
		case slices.Contains(counts, n):
			return nil, values.Wrong("neighbours", "%q: %d is given twice", list, n)
		}
		counts = append(counts, n)
	}
	for _, pt := range points {
		for _, n := range counts {
			pt.Neighbours = n
			all = append(all, pt)
		}
	}
	return all, nil
}

// neighbours are processes that spin while a slice is measured beside them. Between slices they are stopped.
type neighbours []*exec.Cmd

// startNeighbours starts as many as a point has at most. They end with this process.
func startNeighbours(points []engine.Point) (n neighbours, err error) {
	most := 0
	for _, pt := range points {
		most = max(most, pt.Neighbours)
	}
	if most == 0 {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	for range most {
		c := exec.Command(self, NeighbourChild)
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			n.end()
			return nil, fmt.Errorf("start a neighbour: %w", err)
		}
		n = append(n, c)
		var status unix.WaitStatus
		for {
			if _, err = unix.Wait4(c.Process.Pid, &status, unix.WUNTRACED, nil); err != unix.EINTR {
				break
			}
		}
		if err != nil || !status.Stopped() {
			n.end()
			return nil, fmt.Errorf("start a neighbour: it ended with status %#x, %w", int(status), err)
		}
	}
	return n, nil
}

// Spin is what the process of NeighbourChild does.
func Spin() {
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	for {
	}
}

func (n neighbours) spin(count int) { n[:min(count, len(n))].signal(syscall.SIGCONT) }

func (n neighbours) rest() { n.signal(syscall.SIGSTOP) }

func (n neighbours) end() {
	n.signal(syscall.SIGKILL)
	for _, c := range n {
		_ = c.Wait() // it was killed
	}
}

func (n neighbours) signal(s os.Signal) {
	for _, c := range n {
		_ = c.Process.Signal(s) // one that somebody killed is missing, which the points show
	}
}

// Measuring is the name that a run holds while it measures, of the abstract namespace (unix(7)), which the kernel frees
// with the process. A variable for tests; empty for none.
var Measuring = "@rdmaperf/measuring"

// hold says that this process measures on this machine, until the closer is closed. Where another run does, the log has
// its process.
func hold(ctx context.Context, log *slog.Logger, name string) io.Closer {
	if name == "" {
		return io.NopCloser(nil)
	}
	l, err := new(net.ListenConfig).Listen(ctx, "unix", name)
	if err == nil {
		return l
	}
	if pid := holder(ctx, name); pid != 0 && pid != os.Getpid() {
		log.Warn("another run measures on this machine: the figures of both include its load", "process", pid)
	}
	return io.NopCloser(nil)
}

// holder is the process that holds name; 0 for none, or for one of another process namespace.
func holder(ctx context.Context, name string) (pid int) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", name)
	if err != nil {
		return 0
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0
	}
	raw.Control(func(fd uintptr) {
		if cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

const (
	awakeHow   = "/dev/cpu_dma_latency at 0, and in a virtual machine threads of the idle class, too"
	AwakeChild = "awake-child"
)

// MeasureWakeup is a variable for tests, which do not wait for it a hundred times.
var MeasureWakeup = wakeup.Measure

const wakeupLimit = 3 * time.Second

func observeWakeup(ctx context.Context, log *slog.Logger, e *reports.Environment) {
	if MeasureWakeup == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, wakeupLimit)
	defer cancel()
	f, err := MeasureWakeup(ctx, engine.AllowedCPUs())
	if err != nil {
		log.Debug("no figure of the machine's wake-up", "err", err)
		return
	}
	e.Wakeup = &reports.Wakeup{P50: float64(f.P50), P99: float64(f.P99), Samples: f.Samples}
}

func (o *Options) keepAwake(e *reports.Environment) (*wakeup.Awake, error) {
	if !o.awake {
		return new(wakeup.Awake), nil
	}
	var spinner *exec.Cmd
	if e.Hypervisor {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		spinner = exec.Command(self, AwakeChild)
	}
	a, err := wakeup.Hold(spinner)
	if err != nil {
		return nil, &reports.ExitError{Code: reports.ExitNotRun, Operation: "read --awake", Err: err,
			Hint: "root, or a run without --awake"}
	}
	e.Awake = a.String()
	return a, nil
}

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
