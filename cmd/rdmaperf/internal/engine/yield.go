package engine

import "golang.org/x/sys/unix"

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
	yieldAfter = 20_000
	// mostYieldShift bounds the wait to 1.28 ms, still below a time slice.
	mostYieldShift = 6
	// sleepLength is in ns: a target with receives for 256 messages then keeps a million a second from waiting for
	// credits.
	sleepLength = 200_000
	// wantedFor is how long a CPU counts as wanted after it was taken away; to find out anew costs one time slice.
	wantedFor = 100_000_000
	// mostPollShift bounds one step to 4096 polls.
	mostPollShift = 4
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
