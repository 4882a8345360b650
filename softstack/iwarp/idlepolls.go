package iwarp

// A QP is idle when nothing has arrived on it for many polls. A CQ of few QPs polls the idle ones less often.

const (
	// lookMost is the largest number of QPs for which a CQ tracks which are idle.
	lookMost = 16
	// idleAfter polls in a row without an octet make a QP idle: about a millisecond of a ping-pong.
	idleAfter = 256
	// idleEvery polls of the others come to one of an idle QP, because each is a system call.
	idleEvery = 8
	// idleAsk polls of the others come to one wait of the poller, which covers all idle QPs at once.
	idleAsk = 32
	// idleOctets that one poll brought make it count as one more, because of the time it took.
	idleOctets = 4096
)

// warm is how many QPs are not idle, and askFrom where all are.
func warm(list []*qp) (n int) {
	for _, q := range list {
		if q.idlePolls.Load() < idleAfter {
			n++
		}
	}
	if n == 0 {
		return askFrom
	}
	return n
}

// look polls the sockets of few QPs. While some bring octets, the idle ones are polled in turn and
// less often: a tier with several QPs to one peer would else pay for all of them with each poll.
func (c *cq) look(list []*qp) {
	if len(list) == 1 { // there are no others to be spared for
		q := list[0]
		q.mu.Lock()
		q.step()
		if q.idlePolls.Load() != 0 { // from when there were
			q.idlePolls.Store(0)
		}
		q.mu.Unlock()
		return
	}
	idle, weight := 0, uint32(1)
	for _, q := range list {
		if q.idlePolls.Load() >= idleAfter {
			idle++
			q.active() // its timers run, though its socket is not read
		} else {
			weight += uint32(min(q.poll()/idleOctets, idleAsk))
		}
	}
	switch {
	case idle == 0:
		return
	case idle == len(list):
		for _, q := range list {
			q.poll()
		}
		return
	}
	turn := c.looks.Add(weight)
	switch due := func(every uint32) bool { return turn/every != (turn-weight)/every }; {
	case !c.waited.Load():
		if due(idleEvery) {
			c.pollIdle(list)
		}
	case due(idleAsk):
		for _, q := range list {
			if q.idlePolls.Load() >= idleAfter && !q.polledBy(c) {
				q.poll()
			}
		}
		c.ask(len(list))
	}
}

// pollIdle polls the next idle QP.
func (c *cq) pollIdle(list []*qp) {
	first := int(c.next.Add(1))
	for i := range list {
		if q := list[(first+i)%len(list)]; q.idlePolls.Load() >= idleAfter {
			c.next.Store(uint32(first + i))
			q.poll()
			return
		}
	}
}

// poll is one turn of progress by the application. It returns how many octets came.
func (q *qp) poll() uint64 {
	q.mu.Lock()
	before := q.rx.seen
	q.step()
	came := q.rx.seen - before
	if came != 0 || !q.tx.empty() || q.sqNext != q.sqTail {
		q.idlePolls.Store(0)
	} else {
		q.countIdle()
	}
	q.mu.Unlock()
	return came
}

// step moves the queue pair on. q.mu is held.
func (q *qp) step() {
	q.active()
	if q.phase == phaseOpen {
		q.progress()
		q.wantRoom()
	}
}

// beforeSleep moves the queue pair on where the poller will not report that there is something to do: what was read
// and not handled yet. Octets in the socket it reports at once, so that a read would be a system call in vain.
func (q *qp) beforeSleep(c *cq) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := &q.rx
	if c.dev.receiver == nil && !(q.polledBy(c) && !r.inPlace && r.rs == r.re && q.irq.len() == 0 && !q.tx.unsent() &&
		q.sqNext == q.sqTail) {
		q.step()
	}
	if q.phase == phaseOpen {
		q.roomInPollers()
	}
}

// countIdle counts a poll, or a report of the poller, that brought nothing.
func (q *qp) countIdle() {
	if n := q.idlePolls.Load(); n < idleAfter {
		q.idlePolls.CompareAndSwap(n, n+1) // what was posted meanwhile counts
	}
}
