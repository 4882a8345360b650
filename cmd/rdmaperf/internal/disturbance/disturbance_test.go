package disturbance

import (
	"net"
	"runtime"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/reports"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

// The numbers are those of proc_pid_stat(5), proc_pid_status(5), proc_pid_schedstat(5) and proc_stat(5).
func TestReadSumsUpThreads(t *testing.T) {
	root := fstest.MapFS{
		"proc/stat":                   file("cpu  10 0 20 30 4 0 5 77 0 0\ncpu0 1 2 3\n"),
		"proc/self/task/11/stat":      file("11 (a) b (c) S 1 2 3 4 5 6 100 7 2 8 9 9 9\n"),
		"proc/self/task/11/status":    file("Name:\tx\nvoluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t40\n"),
		"proc/self/task/11/schedstat": file("1000 2000 3\n"),
		"proc/self/task/11/sched": file(
			"x (11, #threads: 1)\nse.nr_migrations                             :                    6\n"),
		"proc/self/task/12/stat":      file("12 (x) R 1 2 3 4 5 6 1 0 1 0 9\n"),
		"proc/self/task/12/status":    file("nonvoluntary_ctxt_switches:\t2\n"),
		"proc/self/task/12/schedstat": file("5 500 3\n"),
	}
	want := reports.Noise{Threads: 2, InvoluntarySwitches: 42, RunQueueWaitNs: 2500, Dispatches: 6, Migrations: 6, MinorFaults: 101,
		MajorFaults: 3, StealNs: 770_000_000}
	for _, r := range []*Reader{{root, []int{11, 12}}, {root, nil}} {
		if got := r.Read(); got != want {
			t.Errorf("threads %v: %+v, want %+v", r.tids, got, want)
		}
	}
	if got := (&Reader{root, []int{99}}).Read(); got != (reports.Noise{Threads: 1, StealNs: 770_000_000}) {
		t.Errorf("a thread that is gone: %+v", got)
	}
}

// A thread that shares its CPU with another is seen to wait for it.
func TestWaitingForACPUIsSeen(t *testing.T) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !set.IsSet(cpu) {
		cpu++
	}
	spin := func(done chan<- reports.Noise) {
		runtime.LockOSThread() // never unlocked: the thread ends with its affinity
		var one unix.CPUSet
		one.Set(cpu)
		if err := unix.SchedSetaffinity(0, &one); err != nil {
			t.Error(err)
		}
		r := Of(unix.Gettid())
		before := r.Read()
		for begun := time.Now(); time.Since(begun) < 300*time.Millisecond; {
		}
		done <- Between(before, r.Read())
	}
	done := make(chan reports.Noise, 2)
	go spin(done)
	go spin(done)
	a, b := <-done, <-done
	if a.RunQueueWaitNs+b.RunQueueWaitNs < int64(50*time.Millisecond) ||
		a.InvoluntarySwitches+b.InvoluntarySwitches == 0 {
		t.Errorf("two threads on one CPU for 300 ms: %+v and %+v", a, b)
	}
}

// A peer that reads nothing closes its window.
func TestSocketsCountTheTimeAtAClosedWindow(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.(*net.TCPConn).SetReadBuffer(16 << 10)
	before := Sockets()
	if before.Sockets < 2 {
		t.Fatalf("%+v, want both ends", before)
	}
	c.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := c.Write(make([]byte, 64<<20)); err == nil {
		t.Skip("64 MiB fit the buffers of this machine's sockets")
	}
	d := Between(before, Sockets())
	if d.Sockets < 2 || d.Segments == 0 || d.WindowLimitedNs < int64(100*time.Millisecond) ||
		d.WindowLimitedNs > int64(10*time.Second) {
		t.Errorf("%+v, want most of 300 ms behind a closed window", d)
	}
}

func TestSocketsAreOfReadingsApart(t *testing.T) {
	was, is := Sockets(), Sockets()
	if d := Between(was, is); d.Retransmits < 0 || d.Segments < 0 {
		t.Errorf("%+v", d)
	}
}
