package engine

import (
	"encoding/binary"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// demoted keeps the process's other threads from preempting its workers, as the Go runtime's monitor does while a
// thread spins through cgo. Under SCHED_BATCH (sched(7)) they wait for a free CPU or the next tick, and with slack
// (PR_SET_TIMERSLACK(2const), CAP_SYS_NICE) their timers expire with another interrupt. Where both sides are one
// process there is no slack: the runtime starts who waits for a lock by short sleeps.
var demoted struct {
	sync.Mutex
	workers map[int]int // threads that measure, and how often each was named
	changed map[int]bool
	slack   int // ns, of threads as they were
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
		demoted.slack = ownSlack()
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

func ownSlack() int {
	ns, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return 0
	}
	return ns
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
		for b := buf[:n]; len(b) > direntName; { // linux_dirent64 of getdents(2)
			size := int(binary.NativeEndian.Uint16(b[direntSize:]))
			number, digits := 0, 0
			for _, c := range b[direntName:size] {
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

const (
	direntSize = 16 // where a directory entry has its length
	direntName = 19 // and its name
)

// swapPolicy changes a thread's scheduling policy if it is from.
func swapPolicy(tid int, from, to uint32) bool {
	a, err := unix.SchedGetAttr(tid, 0)
	if err != nil || a.Policy != from {
		return false
	}
	a.Policy = to
	return unix.SchedSetAttr(tid, a, 0) == nil
}
