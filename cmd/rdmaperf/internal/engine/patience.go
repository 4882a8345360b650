package engine

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Patience ends a wait in which nothing completes. Its limit counts the time that the waiting thread was given, not
// that for which another program had its CPU. The zero value reads proc(5), schedstat, and getrusage(2).
type Patience struct {
	delay func() int64 // ns that the thread has waited for a CPU
	used  func() int64 // ns of CPU time of the process, over the number of CPUs

	since, at, before, had int64 // of the wait that it looks at
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
