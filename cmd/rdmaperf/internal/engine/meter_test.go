package engine

import (
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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

// A thread that works for some ticks is seen by the machine's account, too. Where a hypervisor takes the CPU away,
// the process's clock runs on while ticks are lost, so one of a few tries must do.
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

// The kernel tells the time of a process in two ways. That of getrusage(2), which results
// have, may lack the last tick of threads that are running, and is never more.
func TestUsageIsTheProcessorTimeOfThisProcess(t *testing.T) {
	clock := func() time.Duration {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
			t.Fatal(err)
		}
		return time.Duration(ts.Nano())
	}
	// Enough for a factor to show, and nearly all of it the kernel's: where both halves are
	// alike, one of them twice is the sum as well.
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
