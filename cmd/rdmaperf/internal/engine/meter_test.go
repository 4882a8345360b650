package engine

import (
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/internal/freemem"
	"github.com/rdmaperf/rdmaperf/transports"
)

// A thread that sleeps in the kernel leaves its CPU, which counts.
func TestSwitchesOfThreadsAreCounted(t *testing.T) {
	const sleeps = 20
	before := ReadUsage()
	for range sleeps {
		nap := syscall.NsecToTimespec(1000)
		if err := syscall.Nanosleep(&nap, nil); err != nil && err != syscall.EINTR {
			t.Fatal(err)
		}
	}
	if n := ReadUsage().Minus(before).switches; n < sleeps {
		t.Errorf("%d switches for %d sleeps", n, sleeps)
	}
}

func TestMachineTimeIsWhatIsNeitherIdleNorStolen(t *testing.T) {
	for _, c := range []struct {
		stat string
		want time.Duration
	}{
		{"cpu  1 20 300 4000 50000 600000 7000000 80000000 1 1\ncpu0 9 9 9 9 9 9 9 9 9 9\n", 7_600_321 * machineTick},
		{"cpu  1 2 3 4 5 6 7", 19 * machineTick}, // of before Linux 2.6.11
		{"cpu0 1 2 3 4 5 6 7\n", 0},
		{"cpu 1 2 3 4 5 6\n", 0},
		{"cpu 1 2 x 4 5 6 7\n", 0},
		{"cpu 1 2 -3 4 5 6 7\n", 0},
		{"", 0},
	} {
		if got := machineTime([]byte(c.stat)); got != c.want {
			t.Errorf("%q is %v, want %v", c.stat, got, c.want)
		}
	}
}

// The machine's account sees a thread that works for some ticks. Under a hypervisor ticks are lost, so one try must do.
func TestMachineTimeHoldsThatOfThisProcess(t *testing.T) {
	if readMachine() == 0 {
		t.Skip("this kernel has no /proc/stat")
	}
	var spent Usage
	for range 10 {
		from := ReadUsage()
		for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
			if spent = ReadUsage().Minus(from); spent.CPU >= 20*machineTick {
				break
			}
		}
		// Two ticks: an account by ticks may miss the first and the last.
		if spent.CPU >= 20*machineTick && spent.machine >= spent.CPU-2*machineTick-spent.CPU/4 {
			return
		}
	}
	t.Errorf("in each of ten tries the machine spent less than this process: in the last %v and %v", spent.machine,
		spent.CPU)
}

func FuzzMachineTime(f *testing.F) {
	f.Add([]byte("cpu  1 20 300 4000 50000 600000 7000000 80000000 1 1\n"))
	f.Add([]byte("cpu  281474976710655 1 1 1 1 1 1 1 1 1\n")) // all that fits a column: too much for a time
	f.Add([]byte("cpu  450000000000 450000000000 22337203685 1 1 1 1 1 1 1\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if got := machineTime(b); got < 0 {
			t.Errorf("%q is %v", b, got)
		}
	})
}

// The time of getrusage(2) may lack the last tick of running threads, and is never more than that of the clock.
func TestUsageIsTheProcessorTimeOfThisProcess(t *testing.T) {
	clock := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	// Enough for a factor to show, and nearly all of it the kernel's: twice one half must not be the sum.
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Skip(err)
	}
	defer zero.Close()
	for b, end := make([]byte, 1<<20), clock()+40*machineTick; clock() < end; {
		if _, err := zero.Read(b); err != nil {
			t.Fatal(err)
		}
	}
	from := clock()
	got := ReadUsage().CPU
	to := clock()
	if got < from-4*machineTick || got > to+machineTick {
		t.Errorf("%v of processor time, want %v to %v", got, from, to)
	}
}

// The window of several workers is from the first to begin until the last to end; each one's share is of its own.
func TestTheWindowOfAGroupHoldsAllItsWorkers(t *testing.T) {
	for _, order := range [][3]int{{0, 1, 2}, {2, 0, 1}, {1, 2, 0}} {
		each := [3]Worker{{Begin: 500, End: 900, Ops: 1}, {Begin: 300, End: 700, Ops: 10},
			{Begin: 400, End: 1100, Ops: 100}}
		g := &Group{}
		for _, i := range order {
			g.Workers = append(g.Workers, &each[i])
		}
		o := g.collect(make([]error, 3))
		if o.Begin != 300 || o.Window != 800 || o.Ops != 111 {
			t.Errorf("order %v: from %d for %v, %d operations; want 300, 800ns, 111", order, o.Begin, o.Window, o.Ops)
		}
		for k, i := range order {
			if want := time.Duration(each[i].End - each[i].Begin); o.Shares[k].Window != want {
				t.Errorf("order %v: worker %d has a share of %v, want %v", order, i, o.Shares[k].Window, want)
			}
		}
	}
}

func TestLaterSlicesWarmUpForATenth(t *testing.T) {
	for _, c := range []struct {
		plan         Plan
		first, later Limits
	}{
		{Plan{WarmupIterations: 1000, WarmupDuration: 200 * time.Millisecond},
			Limits{1000, 200 * time.Millisecond}, Limits{100, 20 * time.Millisecond}},
		{Plan{WarmupIterations: 3}, Limits{Ops: 3}, Limits{Ops: 1}},
		{Plan{}, Limits{}, Limits{}},
	} {
		for slice, want := range []Limits{c.first, c.later} {
			m := &Measurement{Plan: &c.plan, r: &Run{slice: slice}}
			if got := m.WarmUp(); got != want {
				t.Errorf("slice %d of %+v: warm-up %+v, want %+v", slice, c.plan, got, want)
			}
		}
	}
}

// What cannot fit is refused in words before anything is made, and what can is not.
func TestPointsThatDoNotFitAreRefused(t *testing.T) {
	if freemem.Bytes() < 0 {
		t.Skip("this machine does not tell its memory")
	}
	if err := checkMemory("point", 1<<60); err == nil {
		t.Error("2^60 bytes fit")
	}
	if err := checkMemory("point", 1<<16); err != nil {
		t.Error(err)
	}
}

type ofTwoProcesses struct{ transports.Stack }

func (ofTwoProcesses) Caps() transports.Caps { return transports.Caps{} }

func TestOtherProgramsRanWhatTheMachineUsedBeyondTheRun(t *testing.T) {
	const window = time.Second
	for _, c := range []struct {
		what            string
		host            string
		client, machine time.Duration
		server          float64 // seconds
		seen, most      time.Duration
	}{
		{"beside a server of this machine", "127.0.0.1", window / 4, window * 3 / 4, 0.25, window / 4,
			window/4 + machineTick},
		{"all of it was the run's", "::1", window / 4, window / 2, 0.25, 0, machineTick},
		{"it counts less than the run used", "127.0.0.1", window / 4, window / 8, 0.25, 0, machineTick},
		{"a server elsewhere", "192.0.2.1", window / 4, window / 2, 0.25, window, window},
		{"a machine that does not count", "127.0.0.1", window / 4, 0, 0.25, window, window},
	} {
		m := Measurement{Stack: ofTwoProcesses{}, r: &Run{client: &Client{host: c.host}}}
		out := &Outcome{Window: window, Usage: Usage{CPU: c.client, machine: c.machine}}
		m.disturbedBy(out, &PhaseReport{CPUSeconds: c.server})
		if got := m.others; got.Seen != c.seen || got.Most != c.most {
			t.Errorf("%s: %v, want %v and %v", c.what, got, c.seen, c.most)
		}
	}
}
