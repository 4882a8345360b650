package sched

import "time"

// The keeper is the device's goroutine for applications that post and then do
// something else. Completions make room for what waits, and somebody has to take
// them. It runs from the first time that work is held back until the device is
// closed, and sleeps while none is.

const (
	keepPeriod = 10 * time.Millisecond  // how often a QP with work held back is looked at
	keepPause  = 100 * time.Microsecond // between two looks while an application is away
)

// keepUp makes sure that what waits goes on without the application. The caller
// holds q.mu.
func (q *qp) keepUp() {
	if q.waiting == 0 || q.watched.Load() {
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

// stop ends the goroutine, and waits for it.
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
			c := q.send
			c.mu.Lock()
			now[c] = c.polls
			before, known := seen[c]
			idle := known && before == c.polls
			c.mu.Unlock()
			if idle {
				away = true
				for c.drain() > 0 && c.backlog() < 2*c.depth {
				}
				c.mu.Lock()
				q.look()
				c.mu.Unlock()
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

// forget takes QPs off the list that have nothing held back.
func (k *keeper) forget() {
	k.mu.Lock()
	all := k.qps
	k.mu.Unlock()
	var keep []*qp
	for _, q := range all {
		q.mu.Lock()
		if q.waiting > 0 && !q.closed {
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

// backlog is how many completions nobody has polled.
func (c *cq) backlog() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.many
}
