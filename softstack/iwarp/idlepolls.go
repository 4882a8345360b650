package iwarp

// A queue pair is quiet when nothing came on it for long. A CQ of few looks at the others with
// each poll, and at the quiet ones now and then.

const (
	// lookMost is how many QPs a CQ has for which the quiet ones are told from the others.
	lookMost = 16
	// quietAfter is after how many looks in a row without an octet a QP is quiet: a
	// millisecond or so of a ping-pong on another one. Arbitrary.
	quietAfter = 256
	// quietEvery is how many looks at the others there are to one at a quiet QP. Arbitrary:
	// each is a system call, and what comes first on a quiet one of four is late by some 24
	// looks at most.
	quietEvery = 8
	// quietAsk is likewise to one question to the poller, which answers for all that are
	// quiet: as late, whatever their number, for a quarter of the calls. Arbitrary.
	quietAsk = 32
	// quietOctets is how many octets that a look brought make it count as one more, as it took
	// its time. Arbitrary.
	quietOctets = 4096
)

// warm is how many QPs are not quiet, and askFrom where none is not.
func warm(list []*qp) (n int) {
	for _, q := range list {
		if q.quiet.Load() < quietAfter {
			n++
		}
	}
	if n == 0 {
		return askFrom
	}
	return n
}

// look looks at the sockets of few QPs. Beside some that bring octets, those that brought
// none for long are looked at by turns, now and then. A tier that shares several QPs with one
// peer would pay for all of them with each poll.
func (c *cq) look(list []*qp) {
	if len(list) == 1 { // there are no others to be spared for
		q := list[0]
		q.mu.Lock()
		q.step()
		if q.quiet.Load() != 0 { // from when there were
			q.quiet.Store(0)
		}
		q.mu.Unlock()
		return
	}
	quiet, weight := 0, uint32(1)
	for _, q := range list {
		if q.quiet.Load() >= quietAfter {
			quiet++
			q.active() // it is looked after, though its socket is not touched
		} else {
			weight += uint32(min(q.poll()/quietOctets, quietAsk))
		}
	}
	switch {
	case quiet == 0:
		return
	case quiet == len(list):
		for _, q := range list {
			q.poll()
		}
		return
	}
	turn := c.looks.Add(weight)
	switch due := func(every uint32) bool { return turn/every != (turn-weight)/every }; {
	case !c.waited.Load():
		if due(quietEvery) {
			c.lookAtQuiet(list)
		}
	case due(quietAsk):
		for _, q := range list {
			if q.quiet.Load() >= quietAfter && !q.told(c) {
				q.poll()
			}
		}
		c.ask(len(list))
	}
}

// lookAtQuiet looks at the next one.
func (c *cq) lookAtQuiet(list []*qp) {
	first := int(c.next.Add(1))
	for i := range list {
		if q := list[(first+i)%len(list)]; q.quiet.Load() >= quietAfter {
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
		q.quiet.Store(0)
	} else {
		q.unheard()
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

// unheard counts a look, or an answer of the poller, that brought nothing.
func (q *qp) unheard() {
	if n := q.quiet.Load(); n < quietAfter {
		q.quiet.CompareAndSwap(n, n+1) // what was posted meanwhile counts
	}
}
