package sched_test

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
	"golang.org/x/sys/unix"
)

// aloneSetup is what a path's windows of BenchmarkAlone are like.
type aloneSetup struct {
	open func() (rdma.Device, error)

	// window is how long one posts. A shared machine changes its speed by a factor of two,
	// for seconds or for a tenth of one: what is to be compared has to lie closer together.
	window time.Duration
	most   int           // bytes outstanding, as all of it has to arrive within the window
	burst  int           // and in one post, at most
	nap    time.Duration // of the other end, where its device needs no polls
	nice   int           // nice value of who posts and polls
}

const (
	aloneDepth = 128
	aloneSlots = 16 << 20 // bytes of memory at each end
)

func aloneIWARP(below iwarp.Config) aloneSetup {
	return aloneSetup{open: func() (rdma.Device, error) { return iwarp.Open(below) }, window: 20 * time.Millisecond,
		most: 128 << 20, burst: 1 << 20}
}

// devicesVariable names the devices of transports/verbs to test over, as in its own tests.
const devicesVariable = "RDMAPERF_VERBS_DEVICES"

// aloneVerbs is for software devices on emulated CPUs, which send 60 to 800 MB/s: 8 MiB
// are a part of a window there. At least two requests are outstanding. Such a device works
// in threads of the kernel, which come first, as they do in rdmaperf's streams.
func aloneVerbs(device string) aloneSetup {
	cfg := verbs.Default()
	cfg.Device = device
	return aloneSetup{open: func() (rdma.Device, error) { return verbs.Open(cfg) }, window: 300 * time.Millisecond,
		most: 8 << 20, burst: 64 << 10, nap: time.Millisecond, nice: 19}
}

// BenchmarkAlone streams writes over a bare connection and over one through the
// tier, in turn: first, second, second, first, so that a drift cancels. Each end has a
// thread and a CPU of its own. Every round has new connections and new memory, whose
// places differ by several percent, and the arms change places: a round is one sample.
// Many samples come by -benchtime 1x and -count. Without CRC the path is faster, and
// what the tier adds shows more. Kernel verbs are for the lab.
func BenchmarkAlone(b *testing.B) {
	aloneOver(b, aloneIWARP(iwarp.Config{}), 64, 64<<10, 1<<20, 16<<20)
	b.Run("nocrc", func(b *testing.B) { aloneOver(b, aloneIWARP(iwarp.Config{NoCRC: true}), 64<<10, 1<<20) })
	if device := os.Getenv(devicesVariable); device != "" {
		b.Run("verbs", func(b *testing.B) { aloneOver(b, aloneVerbs(device), 64, 64<<10, 1<<20, 8<<20) })
	}
}

func aloneOver(b *testing.B, path aloneSetup, sizes ...int) {
	for _, size := range sizes {
		round := 0
		b.Run(sizeName(size), func(b *testing.B) {
			for range b.N {
				arms := []aloneArm{{name: "bare", path: path}, {name: "sched", path: path, cfg: &sched.Config{}}}
				if round++; round%2 == 0 {
					arms[0], arms[1] = arms[1], arms[0]
				}
				for i := range arms {
					arms[i].open(b, size)
				}
				alone(b, arms)
				for _, a := range arms {
					b.ReportMetric(a.bytes/a.took.Seconds(), a.name+"-B/s")
					b.ReportMetric(a.cpu.Seconds()/a.bytes*1e9, a.name+"-cpu-s/GB")
					b.ReportMetric(a.machine.Seconds()/a.bytes*1e9, a.name+"-machine-s/GB")
				}
			}
		})
	}
}

// aloneArm is one connection, and what its windows brought.
type aloneArm struct {
	name  string
	path  aloneSetup
	cfg   *sched.Config
	pair  *benchPair
	ring  []rdma.SendWR // prepared, in batches of which the last is signalled
	batch int
	depth int
	at    int

	bytes              float64
	took, cpu, machine time.Duration
}

func (a *aloneArm) open(b *testing.B, size int) {
	slots := max(1, min(aloneDepth, aloneSlots/size))
	a.pair = newBenchPair(b, a.path.open, a.cfg, slots*size)
	a.depth = min(aloneDepth, max(2, a.path.most/size))
	a.batch = max(1, min(16, a.path.burst/size))
	a.ring = a.pair.write(size, max(slots, a.batch))
	for i := range a.ring {
		w := &a.ring[i]
		w.SGE[0].Addr += uint64(i % slots * size)
		w.RemoteAddr += uint64(i % slots * size)
		if (i+1)%a.batch != 0 {
			w.Flags = 0
		}
	}
}

// alone measures the arms. The other end polls whichever is at work.
func alone(b *testing.B, arms []aloneArm) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.LockOSThread() // and dies with this goroutine, as it is tied to a CPU
	cpus := twoCPUs(b)
	tie(b, cpus[0])
	if nice := arms[0].path.nice; nice > 0 {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, nice); err != nil {
			b.Fatal(err)
		}
	}
	var (
		active   atomic.Pointer[benchPair]
		arrivals atomic.Int64
		done     = make(chan struct{})
		stopped  = make(chan struct{})
	)
	go func() {
		defer close(stopped)
		runtime.LockOSThread()
		tie(b, cpus[1])
		for {
			select {
			case <-done:
				return
			default:
			}
			if p := active.Load(); p != nil {
				n, err := p.arrived(b)
				if err != nil {
					b.Error(err)
					return
				}
				arrivals.Add(int64(n))
				if nap := arms[0].path.nap; n == 0 && nap > 0 {
					time.Sleep(nap)
				}
			}
		}
	}()
	run := func(a *aloneArm, counts bool) {
		active.Store(a.pair)
		used, all, start := processCPU(), machineCPU(b), time.Now()
		posted := a.window(b, start, &arrivals, stopped)
		if counts {
			a.took += time.Since(start)
			a.cpu += processCPU() - used
			a.machine += machineCPU(b) - all
			a.bytes += float64(posted) * float64(a.ring[0].SGE[0].Len)
		}
	}
	for i := range arms {
		run(&arms[i], false)
	}
	b.ResetTimer()
	for _, i := range []int{0, 1, 1, 0} {
		run(&arms[i], true)
	}
	b.StopTimer()
	close(done)
	<-stopped
}

// window posts for a time, and waits until all has arrived.
func (a *aloneArm) window(b *testing.B, start time.Time, arrivals *atomic.Int64, stopped <-chan struct{}) (posted int) {
	before, done, looks := arrivals.Load(), 0, 0
	post := func(wrs []rdma.SendWR) {
		if n, err := a.pair.a.PostSend(wrs); n < len(wrs) {
			b.Fatal(n, err)
		}
	}
	for end := start.Add(a.path.window); ; {
		if posted-done+a.batch <= a.depth {
			post(a.ring[a.at : a.at+a.batch])
			a.at = (a.at + a.batch) % len(a.ring)
			posted += a.batch
		}
		n := a.completed(b)
		if done += n * a.batch; n > 0 && time.Now().After(end) {
			break
		}
	}
	post([]rdma.SendWR{{ID: 2, Op: rdma.OpSend}}) // its arrival proves that of everything
	for done < posted || arrivals.Load() == before {
		done += a.completed(b) * a.batch
		if looks++; looks%1024 == 0 {
			select {
			case <-stopped:
				b.FailNow()
			default:
			}
		}
	}
	return posted
}

func (a *aloneArm) completed(b *testing.B) int {
	n, err := a.pair.ca.Poll(a.pair.wcs[:])
	if err != nil {
		b.Fatal(err)
	}
	for _, wc := range a.pair.wcs[:n] {
		if wc.Status != rdma.StatusSuccess {
			b.Fatal(wc.Status)
		}
	}
	return n
}

// arrived takes what came at the other end.
func (p *benchPair) arrived(tb testing.TB) (int, error) {
	var wcs [32]rdma.WC
	n, err := p.cb.Poll(wcs[:])
	for range n {
		p.recv(tb, 0)
	}
	return n, err
}

// twoCPUs are the last two that this process may use.
func twoCPUs(b *testing.B) (cpus [2]int) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		b.Fatal(err)
	}
	if set.Count() < 2 {
		b.Skip("two ends at work at the same time take two CPUs")
	}
	for i := range 8 * int(len(set)) * 8 {
		if set.IsSet(i) {
			cpus[0], cpus[1] = cpus[1], i
		}
	}
	return cpus
}

func tie(b *testing.B, cpu int) {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		b.Error(err)
	}
}

// processCPU is the time that all threads have worked.
func processCPU() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// machineCPU is the time for which the machine's CPUs were at work, in steps of 10 ms:
// what drivers do in interrupts and in threads of the kernel is no process's.
func machineCPU(b *testing.B) time.Duration {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		b.Fatal(err)
	}
	var user, nice, system, idle, iowait, irq, softirq int64 // proc_stat(5)
	if _, err := fmt.Sscanf(string(stat), "cpu %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &iowait, &irq,
		&softirq); err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+nice+system+irq+softirq) * 10 * time.Millisecond
}
