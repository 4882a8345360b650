package bench

import (
	"errors"
	"fmt"
	"math"

	"github.com/rdmaperf/rdmaperf/reports"
)

// The open loop of the latency workload: operations start when they are due,
// whether or not the one before was quick. One that is due while another is under
// way starts right after it, and its wait is part of its latency. None is skipped.

const (
	minRate = 0.1 // operations a second: a pause of 10 s
	maxRate = 1e8

	// pollUntil: further ahead than this, the thread polls its session while it
	// waits, as an application would, which keeps a soft transport awake; then it
	// only watches the clock, so that no poll delays the start. A poll of a soft
	// transport takes a system call or two, some 500 ns.
	pollUntil = 2000 // ns
)

// checkRate says what is wrong with a point's rate.
func (p Point) checkRate() error {
	switch {
	case p.Rate == 0:
		return nil
	case p.Workload != WorkloadLatency && !CallWorkload(p.Workload):
		return fmt.Errorf("a rate is for the workload %s and those of calls", WorkloadLatency)
	case !(p.Rate >= minRate && p.Rate <= maxRate): // not a number, too
		return fmt.Errorf("rate %v: want %v to %v a second", p.Rate, minRate, maxRate)
	}
	return nil
}

// pacers makes the workers' pacers. The rate is that of all workers together;
// constant arrivals interleave.
func (c *crew) pacers(arrivals string) {
	if c.sh.Rate == 0 {
		return
	}
	n := len(c.workers)
	for i, w := range c.workers {
		w.pace = NewPacer(float64(n)*1e9/c.sh.Rate, arrivals == ArrivalsPoisson, c.sh.Seed+uint64(i))
		if arrivals != ArrivalsPoisson {
			w.paceShift = int64(float64(i) * 1e9 / c.sh.Rate)
		}
	}
}

// paced is the loop each with intended starts. A window by duration ends at its
// deadline even when nothing is due, so that the achieved rate is one.
func (w *worker) paced(divide int64, one func(w *worker, l *lane) (t0, t1 int64, err error)) error {
	w.open()
	w.pace.Start(w.begin + w.paceShift)
	deadline := int64(math.MaxInt64)
	if w.lim.dur > 0 {
		deadline = w.begin + int64(w.lim.dur)
	}
	for n := int64(0); w.lim.ops == 0 || n < w.lim.ops; n++ {
		for _, l := range w.lanes {
			due := w.pace.Due()
			t, err := w.awaitStart(l, min(due, deadline))
			if err != nil {
				w.end = now()
				return err
			}
			if t >= deadline {
				w.end = t
				w.unsent = w.pace.Missed(deadline)
				return nil
			}
			w.pace.Next()
			t0, t1, err := one(w, l)
			if err != nil {
				w.end = now()
				return err
			}
			// Only the operation's own time has two ways; the wait is no part of that.
			service := (t1 - t0) / divide
			w.record(t1, t0-due+service, service)
			w.service.Record(service)
			w.ops++
			w.end = t1
			if w.stopped() {
				return errStop
			}
		}
	}
	return nil
}

// awaitStart spins until t and returns the time. Nothing is under way.
func (w *worker) awaitStart(l *lane, t int64) (int64, error) {
	at := now()
	if at >= t {
		w.late++
		return at, nil
	}
	for at < t {
		if w.stopped() {
			return at, errStop
		}
		if t-at > pollUntil {
			n, err := l.s.Poll(w.done)
			if n > 0 {
				err = errors.New("a completion that nothing asked for")
			}
			if err != nil {
				return at, w.lost(l, "poll", err)
			}
		}
		at = now()
	}
	return at, nil
}

// openLoop completes the result of a paced point.
func (m *measurement) openLoop(res *reports.Result, out *outcome) {
	service := out.service.Snapshot()
	res.LatencyService = &service
	res.Parameters["rate_achieved"] = reports.NewThroughput(0, out.ops, out.window).OperationsPerSecond
	res.Parameters["late_operations"], res.Parameters["unsent_operations"] = out.late, out.unsent
}
