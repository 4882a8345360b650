package sched

import (
	"sync"
	"time"
)

// keeper is the device's goroutine for QPs with work held back whose application neither posts nor polls.
type keeper struct {
	mu      sync.Mutex
	qps     []*qp
	wake    chan struct{}
	done    chan struct{} // nil before the first QP had work held back
	stopped bool
}

const (
	keepPeriod = 10 * time.Millisecond  // how often a QP with work held back is looked at
	keepPause  = 100 * time.Microsecond // between two looks while an application is away
)

// keepUp makes sure that what waits goes on without the application. The caller holds q.mu.
func (q *qp) keepUp() {
	if q.waiting == 0 && !q.cuts() || q.watched.Load() {
		return
	}
	q.watched.Store(true)
	k := &q.dev.keep
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	if k.done == nil {
		k.wake, k.done = make(chan struct{}, 1), make(chan struct{})
		go k.run()
	}
	k.qps = append(k.qps, q)
	if len(k.qps) == 1 {
		select {
		case k.wake <- struct{}{}:
		default:
		}
	}
}

func (k *keeper) stop() {
	k.mu.Lock()
	was := k.stopped
	k.stopped = true
	done := k.done
	if done != nil && !was {
		close(k.wake)
	}
	k.mu.Unlock()
	if done != nil {
		<-done
	}
}

func (k *keeper) run() {
	defer close(k.done)
	timer := time.NewTimer(keepPeriod)
	defer timer.Stop()
	var seen map[*cq]uint32
	for {
		k.mu.Lock()
		qps := k.qps
		stopped := k.stopped
		k.mu.Unlock()
		if stopped {
			return
		}
		if len(qps) == 0 {
			seen = nil
			if _, open := <-k.wake; !open {
				return
			}
			continue
		}
		away := false
		now := make(map[*cq]uint32, len(qps))
		for _, q := range qps {
			if q.send.idle(now, seen) {
				n := q.send.catchUp()
				q.mu.Lock()
				q.look()
				away = away || n > 0 || q.waiting > 0
				q.mu.Unlock()
			}
			// Who takes cut sends has to tell the peer, if only to make room.
			if q.mailbox != nil && q.recv != q.send && q.recv.idle(now, seen) && q.recv.catchUp() > 0 {
				away = true
			}
		}
		seen = now
		k.forget()
		pause := keepPeriod
		if away {
			pause = keepPause
		}
		timer.Reset(pause)
		<-timer.C
	}
}

func (k *keeper) forget() {
	k.mu.Lock()
	all := k.qps
	k.mu.Unlock()
	var keep []*qp
	for _, q := range all {
		q.mu.Lock()
		if (q.waiting > 0 || q.cuts() && !q.failed) && !q.closed {
			keep = append(keep, q)
		} else {
			q.watched.Store(false)
		}
		q.mu.Unlock()
	}
	k.mu.Lock()
	// What came meanwhile stands behind what was looked at.
	k.qps = append(keep, k.qps[len(all):]...)
	k.mu.Unlock()
}

// idle reports whether nobody polled since the last look, which seen is of. It notes this one in now.
func (c *cq) idle(now, seen map[*cq]uint32) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now[c] = c.polls
	before, known := seen[c]
	return known && before == c.polls
}

func (c *cq) catchUp() (n int) {
	for c.backlog() < 2*c.depth {
		k := c.drain()
		if k == 0 {
			break
		}
		n += k
	}
	return n
}

func (c *cq) backlog() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.many
}
