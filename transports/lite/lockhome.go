package lite

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// lockTable grants tickets of locks that lie at this node, and passes on those of lost nodes.
type lockTable struct {
	mu  sync.Mutex
	all map[uint64]*homeLock // by region; only locks with waiters
}

type homeLock struct {
	off       uint64
	waiting   map[uint64]Request // by ticket
	granted   map[uint64]int     // ticket → node
	abandoned map[uint64]bool    // tickets whose waiters left
	unclaimed uint64             // served ticket without a known owner
	since     time.Time
}

func (k *lockTable) init() { k.all = map[uint64]*homeLock{} }

func (l *homeLock) word(n *Node, at uint64) *uint64 {
	return (*uint64)(unsafe.Pointer(&n.mem[l.off+at]))
}

// lock finds the state of a lock; k.mu is held.
func (s *nodeServer) lock(region uint64) (*homeLock, error) {
	if l := s.locks.all[region]; l != nil {
		return l, nil
	}
	n := s.node
	n.spaceMu.Lock()
	defer n.spaceMu.Unlock()
	for off, size := range n.owned[region] {
		if size != lockLen {
			break
		}
		l := &homeLock{off: off, waiting: map[uint64]Request{}, granted: map[uint64]int{}, abandoned: map[uint64]bool{}}
		s.locks.all[region] = l
		return l, nil
	}
	return nil, ErrNoRegion
}

// turn keeps the request until the ticket is served.
func (s *nodeServer) turn(r *Request, q *lockRequest) (a empty, err error) {
	k := &s.locks
	k.mu.Lock()
	defer k.mu.Unlock()
	l, err := s.lock(q.Region)
	if err != nil {
		return a, err
	}
	next, serving := atomic.LoadUint64(l.word(s.node, lockNext)), atomic.LoadUint64(l.word(s.node, lockServing))
	if _, twice := l.waiting[q.Ticket]; twice || q.Ticket >= next || len(l.waiting) >= maxCalls {
		return a, ErrFail
	}
	if q.Ticket < serving || l.abandoned[q.Ticket] {
		return a, ErrLockLost
	}
	l.waiting[q.Ticket] = *r
	l.serve(s.node, time.Now())
	return a, errLater
}

// pass follows an unlock that others wait for, or a turn that is not taken.
func (s *nodeServer) pass(_ *Request, q *lockRequest) (empty, error) {
	k := &s.locks
	k.mu.Lock()
	defer k.mu.Unlock()
	l, err := s.lock(q.Region)
	if err != nil {
		return empty{}, err
	}
	if q.Give && q.Ticket < atomic.LoadUint64(l.word(s.node, lockNext)) {
		l.abandoned[q.Ticket] = true
		if w, ok := l.waiting[q.Ticket]; ok {
			delete(l.waiting, q.Ticket)
			w.refuse(ErrTimeout)
		}
	}
	l.serve(s.node, time.Now())
	return empty{}, nil
}

// serve advances the lock until the served ticket belongs to a node that is alive.
func (l *homeLock) serve(n *Node, now time.Time) {
	for {
		serving := atomic.LoadUint64(l.word(n, lockServing))
		maps.DeleteFunc(l.abandoned, func(t uint64, _ bool) bool { return t < serving })
		maps.DeleteFunc(l.granted, func(t uint64, _ int) bool { return t < serving })
		if serving >= atomic.LoadUint64(l.word(n, lockNext)) {
			return
		}
		if w, ok := l.waiting[serving]; ok && !l.abandoned[serving] {
			delete(l.waiting, serving)
			if n.alive(w.From) {
				l.granted[serving] = w.From
				_ = w.Reply([]byte("{}")) // the loss of a node is detected elsewhere
				return
			}
			l.abandoned[serving] = true
		}
		if !l.abandoned[serving] && !l.orphaned(n, serving, now) {
			return
		}
		atomic.CompareAndSwapUint64(l.word(n, lockServing), serving, serving+1)
	}
}

// orphaned is true when the served ticket has no owner that is alive.
func (l *homeLock) orphaned(n *Node, serving uint64, now time.Time) bool {
	if node, ok := l.granted[serving]; ok {
		return !n.alive(node)
	}
	owner := atomic.LoadUint64(l.word(n, lockOwner))
	if owner&0xffffffff == serving&0xffffffff && owner>>32 > 0 {
		l.since = time.Time{}
		return !n.alive(int(owner>>32) - 1)
	}
	// Drawn, neither owned nor requested: its owner is between two messages or heartbeats, or failed there.
	if l.unclaimed != serving || l.since.IsZero() {
		l.unclaimed, l.since = serving, now
	}
	return now.Sub(l.since) > 2*max(n.cfg.DeadAfter, 3*n.cfg.Beat)
}

func (n *Node) alive(id int) bool {
	_, err := n.peerOf(id)
	return id == n.id || err == nil
}

func (k *lockTable) nodeLost(n *Node, node int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.all {
		for t, w := range l.waiting {
			if w.From == node {
				delete(l.waiting, t)
				l.abandoned[t] = true
			}
		}
		l.serve(n, time.Now())
	}
}

// tick advances locks where no message did.
func (k *lockTable) tick(n *Node, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.all {
		l.serve(n, now)
	}
}

func (k *lockTable) forget(region uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.all[region]; l != nil {
		for _, w := range l.waiting {
			w.refuse(ErrDeadHandle)
		}
		delete(k.all, region)
	}
}
