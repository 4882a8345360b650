package engine

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/disturbance"
	"github.com/rdmaperf/rdmaperf/reports"
)

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
func threadsNoise(workers []*Worker) (sum reports.Noise) {
	var n noise
	for _, w := range workers {
		n.add(w.noise, 0)
		sum.StealNs = max(sum.StealNs, w.noise.StealNs)
	}
	steal := sum.StealNs
	sum = n.taken
	sum.Threads, sum.StealNs = len(workers), steal
	return sum
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

// anyWindow is the largest receive window without window scaling, in bytes (RFC 9293 §3.1).
const anyWindow = 1<<16 - 1

func (m *Measurement) disturbed() *reports.Disturbance {
	d := &reports.Disturbance{}
	if m.clientNoise.window > 0 {
		d.Client = &m.clientNoise.taken
	}
	if m.serverNoise.window > 0 {
		d.Server = &m.serverNoise.taken
	}
	if sh := m.Sh; sh.Depth == 1 && !sh.Counted && max(sh.Size, sh.Response) <= anyWindow {
		d.ClosedWindows()
	}
	d.Judge(m.clientNoise.window)
	return d
}
