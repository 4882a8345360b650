package bench

import (
	"golang.org/x/sys/unix"
)

// offers decides when a worker that polls in vain offers its CPU to others. On a
// machine with too few CPUs the peer may be waiting for this one, and only a yield
// lets it run before the end of a time slice. Where nobody waits, a yield is time in
// which an arrival is not seen: where code is translated about 10 us of a round trip
// of 60. So a worker asks ever less often while nobody takes what it offers. The zero
// value asks after leastPatience.
type offers struct {
	last  int64         // when it offered last, ns
	shift uint          // patience is leastPatience << shift
	usage unix.Rusage   // of this thread
	yield func()        // nil: sched_yield(2)
	taken func() uint64 // nil: from usage
}

const (
	// leastPatience is how long nothing comes before a worker yields, in ns. Peers that
	// share a CPU take two of it for a round trip. Arbitrary.
	leastPatience = 20_000
	// mostRefused bounds the patience to 1.28 ms, still below a time slice.
	mostRefused = 6
	// mostLookShift bounds what one volley looks to 4096 polls.
	mostLookShift = 4
)

// offer yields at the time t in a wait that began at since, if it is time.
func (o *offers) offer(t, since int64) {
	if t-max(since, o.last) < leastPatience<<o.shift {
		return
	}
	before := o.switches()
	if o.yield != nil {
		o.yield()
	} else {
		unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
	o.last = t
	switch {
	case o.switches() != before:
		o.shift = 0
	case o.shift < mostRefused:
		o.shift++
	}
}

// switches is how often the thread lost its CPU while it could run: a yield that lets
// another thread run is one of them (nr_involuntary_switches: only a thread that
// sleeps switches of its own will).
func (o *offers) switches() uint64 {
	if o.taken != nil {
		return o.taken()
	}
	if unix.Getrusage(unix.RUSAGE_THREAD, &o.usage) != nil {
		return 0
	}
	return uint64(o.usage.Nivcsw)
}

// looks is how often one volley polls in vain before it returns: longer where others
// want neither the CPU nor, as a rule, the locks that it holds.
func (o *offers) looks() uint32 { return spinLook << min(o.shift, mostLookShift) }
