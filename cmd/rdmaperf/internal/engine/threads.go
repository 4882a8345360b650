package engine

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// AllowedCPUs lists the CPUs that this process may run on, in rising order.
func AllowedCPUs() []int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil
	}
	var cpus []int
	for i := 0; len(cpus) < set.Count(); i++ {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	return cpus
}

func pinThread(cpu int) bool {
	var set unix.CPUSet
	set.Set(cpu)
	return unix.SchedSetaffinity(0, &set) == nil
}

// onOwnThread runs f in a thread of its own, which ends with f; never in the main one, which ends with the process.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread() // a goroutine that ends locked ends its thread
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			runtime.LockOSThread()
			f()
		}()
		<-ended
		runtime.UnlockOSThread()
	}()
}

// ownFiles gives the calling thread a table of open files of its own (unshare(2)): of a shared one the kernel takes a
// reference in each doorbell. There are no sockets in it, because a peer must see at once that its connection was
// closed.
func ownFiles() {
	if unix.Unshare(unix.CLONE_FILES) != nil {
		return
	}
	var list [256]int // most processes have fewer, and then nothing is allocated
	var st unix.Stat_t
	for _, fd := range numbered("/proc/thread-self/fd", list[:0]) {
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFSOCK {
			unix.Close(fd)
		}
	}
}

// Values of Plan.Nice beside a nice value of 1 to MostNice.
const (
	NiceAuto = 0  // MostNice where the kernel is the device, else as the process
	NiceNone = -1 // as the process
)

// MostNice is the nice value (setpriority(2)) of a thread that takes what nobody else wants.
const MostNice = 19

// niceOf is the nice value of the workers of a point, 0 to leave it. A thread that polls a device which is the kernel
// itself takes half of the CPU from the kernel's threads; at the end of the queue it takes what is left.
func (sh *Shape) niceOf(p *Plan, client, server transports.Caps) int {
	if p.Nice != NiceAuto {
		return max(p.Nice, 0)
	}
	kernel := func(c transports.Caps) bool { return c.Unaided && c.Label == rdma.LabelSoft }
	if sh.Counted && sh.Polling != PollingEvent && kernel(client) && kernel(server) {
		return MostNice
	}
	return 0
}

// beNice makes the calling thread as nice as the point asks for. Who is nicer may not go back (RLIMIT_NICE).
func (sh *Shape) beNice() error {
	if sh.Nice == 0 {
		return nil
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, sh.Nice); err != nil {
		return &reports.ExitError{Code: reports.ExitFailed, Operation: "set nice value",
			Err:  fmt.Errorf("%d for a worker: %w", sh.Nice, err),
			Hint: "a value that is no lower than the process's, which nice(1) shows"}
	}
	return nil
}

// demoted keeps the process's other threads from preempting its workers, as the Go runtime's monitor does while a
// thread spins through cgo. Under SCHED_BATCH (sched(7)) they wait for a free CPU or the next tick, and with slack
// (PR_SET_TIMERSLACK(2const), CAP_SYS_NICE) their timers expire with another interrupt. Where both sides are one
// process there is no slack: the runtime starts who waits for a lock by short sleeps.
var demoted struct {
	sync.Mutex
	workers map[int]int // threads that measure, and how often each was named
	changed map[int]bool
	slack   int // ns, of threads as they were; 0: there is none
}

// demotedSlack, in ns, is long against the 20 us of the monitor, and short against everything that a phase waits for.
const demotedSlack = 20_000_000

// demoteOthers begins to, with the calling thread among the workers, and returns what ends it.
func demoteOthers(slack bool) (restore func()) {
	demoted.Lock()
	defer demoted.Unlock()
	if demoted.workers == nil {
		demoted.workers, demoted.changed = map[int]int{}, map[int]bool{}
	}
	own := unix.Gettid()
	demoted.workers[own]++
	if demoted.changed[own] || len(demoted.changed) > 0 {
		swapPolicy(own, unix.SCHED_BATCH, unix.SCHED_NORMAL) // inherited from who made the thread
		setSlack(own, demoted.slack)
		delete(demoted.changed, own)
	} else {
		demoted.slack, _ = unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	}
	untilNone(func(tid int) bool {
		if demoted.workers[tid] > 0 || !swapPolicy(tid, unix.SCHED_NORMAL, unix.SCHED_BATCH) {
			return false
		}
		if slack {
			setSlack(tid, demotedSlack)
		}
		demoted.changed[tid] = true
		return true
	})
	return func() {
		demoted.Lock()
		defer demoted.Unlock()
		if demoted.workers[own]--; demoted.workers[own] == 0 {
			delete(demoted.workers, own)
		}
		if len(demoted.workers) > 0 {
			return
		}
		if len(demoted.changed) > 0 {
			untilNone(func(tid int) bool { // also of those that were made meanwhile
				if !swapPolicy(tid, unix.SCHED_BATCH, unix.SCHED_NORMAL) {
					return false
				}
				setSlack(tid, demoted.slack)
				return true
			})
		}
		clear(demoted.changed)
	}
}

// setSlack changes a thread's timer slack in ns where that is allowed.
func setSlack(tid, ns int) {
	if ns <= 0 {
		return
	}
	if tid == unix.Gettid() {
		unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(ns), 0, 0, 0)
		return
	}
	f, err := os.OpenFile("/proc/"+strconv.Itoa(tid)+"/timerslack_ns", os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	f.WriteString(strconv.Itoa(ns))
}

// untilNone repeats until it changes none, because a thread that is not changed yet may have made another.
func untilNone(change func(tid int) bool) {
	var tids []int
	for range 16 {
		some := false
		tids = Threads(tids[:0])
		for _, tid := range tids {
			some = change(tid) || some
		}
		if !some {
			return
		}
	}
}

// Threads appends this process's to tids.
func Threads(tids []int) []int { return numbered("/proc/self/task", tids) }

// numbered appends the entries of a directory whose names are numbers. It allocates nothing else, as phases count that.
func numbered(dir string, list []int) []int {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return list
	}
	defer unix.Close(fd)
	var buf [4096]byte
	for {
		n, err := unix.Getdents(fd, buf[:])
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return list
		}
		const name = 19
		for b := buf[:n]; len(b) > name; { // linux_dirent64 of getdents(2), whose length is before type and name
			size := int(binary.NativeEndian.Uint16(b[name-3:]))
			number, digits := 0, 0
			for _, c := range b[name:size] {
				if c < '0' || c > '9' {
					break // the end of the name, or one that is no number
				}
				number, digits = 10*number+int(c-'0'), digits+1
			}
			if digits > 0 {
				list = append(list, number)
			}
			b = b[size:]
		}
	}
}

// swapPolicy changes a thread's scheduling policy if it is from.
func swapPolicy(tid int, from, to uint32) bool {
	a, err := unix.SchedGetAttr(tid, 0)
	if err != nil || a.Policy != from {
		return false
	}
	a.Policy = to
	return unix.SchedSetAttr(tid, a, 0) == nil
}
