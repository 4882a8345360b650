package lite

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// lockKeeper gives turns to those who wait for locks that lie at this node, and
// passes on the locks of the dead.
type lockKeeper struct {
	mu  sync.Mutex
	all map[uint64]*homeLock // by region; only locks that somebody waited for
}

// homeLock is one lock with waiters.
type homeLock struct {
	off     uint64
	waiting map[uint64]Request // by ticket
	given   map[uint64]int     // ticket that was told its turn → node
	over    map[uint64]bool    // tickets that nobody wants any more
	stuck   uint64             // served ticket of which nobody is known
	since   time.Time
}

func (k *lockKeeper) init() { k.all = map[uint64]*homeLock{} }

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
		l := &homeLock{off: off, waiting: map[uint64]Request{}, given: map[uint64]int{}, over: map[uint64]bool{}}
		s.locks.all[region] = l
		return l, nil
	}
	return nil, ErrNoRegion
}

// turn keeps the request until the ticket is served.
func (s *nodeServer) turn(r *Request, q *lockRequest) error {
	k := &s.locks
	k.mu.Lock()
	defer k.mu.Unlock()
	l, err := s.lock(q.Region)
	if err != nil {
		return err
	}
	next, serving := atomic.LoadUint64(l.word(s.node, lockNext)), atomic.LoadUint64(l.word(s.node, lockServing))
	if _, twice := l.waiting[q.Ticket]; twice || q.Ticket >= next || len(l.waiting) >= maxCalls {
		return ErrFail
	}
	if q.Ticket < serving || l.over[q.Ticket] {
		return ErrLockLost
	}
	l.waiting[q.Ticket] = *r
	l.serve(s.node, time.Now())
	return errLater
}

// pass is told when a lock was unlocked that others wait for, or a turn is not wanted.
func (s *nodeServer) pass(_ int, q *lockRequest) (nothing, error) {
	k := &s.locks
	k.mu.Lock()
	defer k.mu.Unlock()
	l, err := s.lock(q.Region)
	if err != nil {
		return nothing{}, err
	}
	if q.Give && q.Ticket < atomic.LoadUint64(l.word(s.node, lockNext)) {
		l.over[q.Ticket] = true
		if w, ok := l.waiting[q.Ticket]; ok {
			delete(l.waiting, q.Ticket)
			w.refuse(ErrTimeout)
		}
	}
	l.serve(s.node, time.Now())
	return nothing{}, nil
}

// serve moves the lock on until the served ticket is somebody's who lives.
func (l *homeLock) serve(n *Node, now time.Time) {
	for {
		serving := atomic.LoadUint64(l.word(n, lockServing))
		for t := range l.over {
			if t < serving {
				delete(l.over, t)
			}
		}
		for t := range l.given {
			if t < serving {
				delete(l.given, t)
			}
		}
		if serving >= atomic.LoadUint64(l.word(n, lockNext)) {
			return
		}
		if w, ok := l.waiting[serving]; ok && !l.over[serving] {
			delete(l.waiting, serving)
			if n.there(w.From) {
				l.given[serving] = w.From
				_ = w.Reply([]byte("{}")) // a node that is gone is noticed as such
				return
			}
			l.over[serving] = true
		}
		if !l.over[serving] && !l.orphan(n, serving, now) {
			return
		}
		atomic.CompareAndSwapUint64(l.word(n, lockServing), serving, serving+1)
	}
}

// orphan tells whether the served ticket is nobody's any more.
func (l *homeLock) orphan(n *Node, serving uint64, now time.Time) bool {
	if node, ok := l.given[serving]; ok {
		return !n.there(node)
	}
	owner := atomic.LoadUint64(l.word(n, lockOwner))
	if owner&0xffffffff == serving&0xffffffff && owner>>32 > 0 {
		l.since = time.Time{}
		return !n.there(int(owner>>32) - 1)
	}
	// Drawn and neither owned nor asked for: its owner is between two messages or two
	// beats, or died there. Who is alive says so with every beat.
	if l.stuck != serving || l.since.IsZero() {
		l.stuck, l.since = serving, now
	}
	return now.Sub(l.since) > 2*max(n.cfg.DeadAfter, 3*n.cfg.Beat)
}

// there tells whether a node is alive.
func (n *Node) there(id int) bool {
	if id == n.id {
		return true
	}
	_, err := n.peerOf(id)
	return err == nil
}

func (k *lockKeeper) left(n *Node, node int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.all {
		for t, w := range l.waiting {
			if w.From == node {
				delete(l.waiting, t)
				l.over[t] = true
			}
		}
		l.serve(n, time.Now())
	}
}

// tick finds what no message told of.
func (k *lockKeeper) tick(n *Node, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.all {
		l.serve(n, now)
	}
}

// forget ends a lock whose memory goes back to the arena.
func (k *lockKeeper) forget(region uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.all[region]; l != nil {
		for _, w := range l.waiting {
			w.refuse(ErrDeadHandle)
		}
		delete(k.all, region)
	}
}
