package engine

import (
	"bytes"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/disturbance"
	"github.com/rdmaperf/rdmaperf/internal/procs"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Usage is what the process and its helpers used up to now, or between two readings.
type Usage struct {
	CPU         time.Duration
	machine     time.Duration // of everything on this machine
	switches    int64         // of the process's threads from one to another, wished or not
	Collections int64
	Allocations int64
}

// ReadUsage stops the world for a moment (runtime.ReadMemStats): outside windows only.
func ReadUsage() Usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	process, machine, switches := ReadCPU()
	return Usage{process, machine, switches, int64(m.NumGC), int64(m.Mallocs)}
}

// ReadCPU is the processor time of the process with its helpers and of the machine, and how often the kernel took a CPU
// from a thread of the process. A variable for tests.
var ReadCPU = func() (process, machine time.Duration, switches int64) {
	var ru unix.Rusage
	unix.Getrusage(unix.RUSAGE_SELF, &ru) // cannot fail with these arguments (getrusage(2))
	return time.Duration(ru.Utime.Nano()+ru.Stime.Nano()) + transports.HelperCPU(), readMachine(), ru.Nvcsw + ru.Nivcsw
}

func (u Usage) Minus(v Usage) Usage {
	return Usage{u.CPU - v.CPU, max(u.machine-v.machine, 0), u.switches - v.switches, u.Collections - v.Collections,
		u.Allocations - v.Allocations}
}

var collector struct {
	sync.Mutex
	windows int
	percent int
	limit   int64
}

// HoldCollector collects once and then holds the collector off until release.
func HoldCollector() (release func()) {
	runtime.GC()
	collector.Lock()
	defer collector.Unlock()
	if collector.windows++; collector.windows == 1 {
		collector.limit = debug.SetMemoryLimit(-1)
		debug.SetMemoryLimit(min(1<<30, collector.limit))
		collector.percent = debug.SetGCPercent(-1)
	}
	return sync.OnceFunc(func() {
		collector.Lock()
		defer collector.Unlock()
		if collector.windows--; collector.windows == 0 {
			debug.SetGCPercent(collector.percent)
			debug.SetMemoryLimit(collector.limit)
		}
	})
}

// ReserveProcs leaves the control channel something to run on beside workers that spin, until release.
func ReserveProcs(workers int) (release func()) { return procs.Reserve(workers) }

// machineTick is the unit of /proc/stat: USER_HZ is 100 on every architecture of Go (proc_stat(5), sysconf(3)).
const machineTick = 10 * time.Millisecond

// readMachine is the processor time of this machine since it booted, 0 where the kernel does not say.
func readMachine() time.Duration {
	b, _ := os.ReadFile("/proc/stat")
	return machineTime(b)
}

// machineTime adds up the busy columns of proc_stat(5): user, nice, system, irq and softirq.
func machineTime(stat []byte) time.Duration {
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	f := bytes.Fields(line)
	if len(f) < 8 || string(f[0]) != "cpu" {
		return 0
	}
	var ticks uint64
	for _, column := range []int{1, 2, 3, 6, 7} {
		n, err := strconv.ParseUint(string(f[column]), 10, 48)
		if err != nil {
			return 0
		}
		ticks += n
	}
	if ticks > math.MaxInt64/uint64(machineTick) { // 292 years of processor time: nobody's file
		return 0
	}
	return time.Duration(ticks) * machineTick
}

// noise is what the machine took from one side's threads in the windows of a point. Threads of sessions read their own
// counters around their loop, because these end with the thread.
type noise struct {
	taken  reports.Noise
	window time.Duration
}

func (n *noise) add(o reports.Noise, window time.Duration) {
	n.taken.Threads = max(n.taken.Threads, o.Threads)
	n.taken.InvoluntarySwitches += o.InvoluntarySwitches
	n.taken.RunQueueWaitNs += o.RunQueueWaitNs
	n.taken.Dispatches += o.Dispatches
	n.taken.Migrations += o.Migrations
	n.taken.MinorFaults += o.MinorFaults
	n.taken.MajorFaults += o.MajorFaults
	n.taken.StealNs += o.StealNs
	n.taken.Sockets = max(n.taken.Sockets, o.Sockets)
	n.taken.Segments += o.Segments
	n.taken.Retransmits += o.Retransmits
	n.taken.WindowLimitedNs += o.WindowLimitedNs
	n.window += window
}

func ownNoise() reports.Noise { return disturbance.Of(unix.Gettid()).Read() }

// threadsNoise sums up those of several workers, whose machine is one.
func threadsNoise(workers []*Worker) reports.Noise {
	var n noise
	steal := int64(0)
	for _, w := range workers {
		n.add(w.noise, 0)
		steal = max(steal, w.noise.StealNs)
	}
	n.taken.Threads, n.taken.StealNs = len(workers), steal
	return n.taken
}

// ReadProcessNoise reads the counters of all threads and connections.
func ReadProcessNoise() reports.Noise {
	return disturbance.WithSockets(disturbance.Of().Read(), disturbance.Sockets())
}

// ProcessNoise is of all threads, of which as many work at once as there are CPUs for them.
func ProcessNoise(before reports.Noise) reports.Noise {
	n := disturbance.Between(before, ReadProcessNoise())
	n.Threads = min(n.Threads, runtime.GOMAXPROCS(0))
	return n
}

// disturbedBy adds what a window of both sides lost to noise on the client's, and to other programs.
func (m *Measurement) disturbedBy(out *Outcome, server *PhaseReport) {
	m.clientNoise.add(out.Noise, out.Window)
	o := reports.Others{Seen: out.Window, Most: out.Window} // nothing is known beside a server elsewhere
	if server != nil && m.r.client.oneMachine() {
		own := out.Usage.CPU
		if !m.Stack.Caps().InProcess {
			own += time.Duration(server.CPUSeconds * float64(time.Second))
		}
		o = othersRan(out.Window, out.Usage.machine, own)
	}
	m.others.Seen, m.others.Most = m.others.Seen+o.Seen, m.others.Most+o.Most
}

// othersRan is how long other programs ran on this machine in a window: what everything on it used beyond the run's own
// processes, which is known within a tick. Where the kernel does not count it is the whole window.
func othersRan(window, machine, own time.Duration) reports.Others {
	if machine == 0 {
		return reports.Others{Seen: window, Most: window}
	}
	seen := max(0, machine-own)
	return reports.Others{Seen: seen, Most: seen + machineTick}
}

func (m *Measurement) disturbed() *reports.Disturbance {
	d := &reports.Disturbance{}
	d.OthersRan(m.others)
	if m.clientNoise.window > 0 {
		d.Client = &m.clientNoise.taken
	}
	if m.serverNoise.window > 0 {
		d.Server = &m.serverNoise.taken
	}
	if sh := m.Sh; sh.Depth == 1 && !sh.Counted && max(sh.Size, sh.Response) < 1<<16 { // which every receive window takes
		d.ClosedWindows()
	}
	d.Judge(m.clientNoise.window)
	return d
}

// CountersAround reads now and returns what reads the changes since then, none outside the measured phase.
func CountersAround(read func() []reports.DeviceCounters, gen int) (changes func() []reports.DeviceCounters) {
	if read == nil || gen != GenMeasure {
		return func() []reports.DeviceCounters { return nil }
	}
	before := read()
	return func() []reports.DeviceCounters { return reports.CounterChanges(before, read()) }
}
