package engine

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Yielder decides when a worker that polls in vain yields its CPU to a peer that may wait for it: ever less often while
// nobody takes it. The zero value yields after yieldAfter.
type Yielder struct {
	last  int64         // when it yielded last, ns
	shift uint          // it yields after yieldAfter << shift
	usage unix.Rusage   // of this thread
	yield func()        // nil: sched_yield(2)
	taken func() uint64 // nil: from usage
	// Of a worker that may be late: it sleeps where others want its CPU.
	Sleeps bool
	known  uint64 // switches after the last yield
	wanted int64  // until then, in ns, others want the CPU
	sleep  func() // nil: nanosleep(2)
}

const (
	// yieldAfter is how long nothing comes before a worker yields, ns: half of a round trip of peers that share a CPU.
	yieldAfter     = 20_000
	mostYieldShift = 6 // bounds the wait to 1.28 ms, still below a time slice
	// sleepLength is in ns: a target with receives for 256 messages then keeps a million a second from waiting for
	// credits.
	sleepLength = 200_000
	// wantedFor is how long a CPU counts as wanted after it was taken away; to find out anew costs one time slice.
	wantedFor     = 100_000_000
	mostPollShift = 4 // bounds one step to 4096 polls
)

func (o *Yielder) yieldIfDue(t, since int64) {
	if t-max(since, o.last) < yieldAfter<<o.shift {
		return
	}
	before := o.switches()
	if o.Sleeps && o.slept(t, before) {
		return
	}
	if o.yield != nil {
		o.yield()
	} else {
		unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	o.last, o.known = t, o.switches()
	switch {
	case o.known != before:
		o.shift = 0
	case o.shift < mostYieldShift:
		o.shift++
	}
}

// slept sleeps instead of a yield while others want the CPU, as they do when the thread lost it between two yields. A
// fair scheduler passes over the yield of a thread that has had less than its half.
func (o *Yielder) slept(t int64, switches uint64) bool {
	if switches != o.known {
		o.known, o.wanted = switches, t+wantedFor
	}
	if t >= o.wanted {
		return false
	}
	if o.sleep != nil {
		o.sleep()
	} else {
		SleepFor(sleepLength)
	}
	o.last, o.shift = t, 0
	return true
}

// switches is how often the thread lost its CPU while it could run, also by a yield (nr_involuntary_switches).
func (o *Yielder) switches() uint64 {
	if o.taken != nil {
		return o.taken()
	}
	if unix.Getrusage(unix.RUSAGE_THREAD, &o.usage) != nil {
		return 0
	}
	return uint64(o.usage.Nivcsw)
}

// Polls is how often one step polls an empty CQ before it returns: more where nobody wants the CPU.
func (o *Yielder) Polls() uint32 { return SpinCheck << min(o.shift, mostPollShift) }

func SleepFor(ns int64) {
	_ = unix.Nanosleep(&unix.Timespec{Nsec: ns}, nil) // one that a signal ends is short
}

// Patience ends a wait in which nothing completes. Its limit counts the time that the waiting thread was given, not
// that for which another program had its CPU. The zero value reads proc(5), schedstat, and getrusage(2).
type Patience struct {
	delay                  func() int64 // ns that the thread has waited for a CPU
	used                   func() int64 // ns of CPU time of the process, over the number of CPUs
	since, at, before, had int64        // of the wait that it looks at
	given                  int64
}

// How the time is divided after the limit, and how many limits a wait may take at most.
const (
	probation  = int64(time.Second) / 2
	mostLimits = 4
)

// Over reports whether a wait from since to t, both of Now, is over; it is called again and again behind limit, ns.
func (p *Patience) Over(since, t, limit int64) bool {
	if p.delay == nil {
		p.delay, p.used = threadDelay, processShare
	}
	if p.since != since {
		p.since, p.at, p.before, p.had, p.given = since, t, p.delay(), p.used(), -1
		return false
	}
	if t-p.at < probation {
		return false
	}
	now, used := p.delay(), p.used()
	share := min(max(1-float64(now-p.before)/float64(t-p.at), float64(used-p.had)/float64(t-p.at), 0), 1)
	if p.given < 0 {
		p.given = int64(share * float64(p.at-since))
	}
	p.given += int64(share * float64(t-p.at))
	p.at, p.before, p.had = t, now, used
	// A tenth is what reading clocks and files at other times takes.
	return p.given >= limit-limit/10 || t-since >= mostLimits*limit
}

// processShare is 0 where the kernel does not say it.
func processShare() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return (u.Utime.Nano() + u.Stime.Nano()) / int64(runtime.NumCPU())
}

// threadDelay is 0 where the kernel does not count it.
func threadDelay() int64 {
	b, _ := os.ReadFile("/proc/thread-self/schedstat")
	if f := bytes.Fields(b); len(f) == 3 {
		n, _ := strconv.ParseInt(string(f[1]), 10, 64)
		return n
	}
	return 0
}
