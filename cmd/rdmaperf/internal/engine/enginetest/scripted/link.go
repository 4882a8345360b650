package scripted

import (
	"sync"
	"time"
)

// Times are what everything takes. Zero is no time at all, except where it says otherwise.
type Times struct {
	Out, Back time.Duration // from the end of a link to the other, client to server and back
	Send      time.Duration // of the link, each message
	PerByte   time.Duration // of the link, beside that
	Connect   time.Duration // a Dial
	Idle      time.Duration // a poll in vain, at most; 0: 1 ms
	// Jitter is added to Out of the client's n-th message of a connection, from 0; nil: nothing.
	Jitter func(n int) time.Duration
}

// side is one end's sessions, whose polls wait for each other: a thread may poll several in turn.
type side struct {
	mu       sync.Mutex
	sessions map[*session]struct{}
	changed  chan struct{} // closed with the next event
}

func newSide() *side {
	return &side{sessions: map[*session]struct{}{}, changed: make(chan struct{})}
}

// happened wakes everybody who waits for this side. Its lock is held.
func (s *side) happened() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// news tells whether something happened that a poll has not seen. Its lock is held.
func (s *side) news() bool {
	for x := range s.sessions {
		if x.events != x.seen {
			return true
		}
	}
	return false
}

// link is one way of a connection. Its messages arrive in the order in which they left.
type link struct {
	mu      sync.Mutex
	free    time.Time // when the last message has left
	queue   []flight
	landing bool
}

type flight struct {
	at     time.Time
	arrive func()
}

func (l *link) carry(t Times, bytes int, way time.Duration, arrive func()) (left time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(t.Send + time.Duration(bytes)*t.PerByte)
	f := flight{l.free.Add(way), arrive}
	if n := len(l.queue); n > 0 && f.at.Before(l.queue[n-1].at) {
		f.at = l.queue[n-1].at // nothing overtakes
	}
	l.queue = append(l.queue, f)
	time.AfterFunc(f.at.Sub(now), l.land)
	return l.free.Sub(now)
}

// land lets everything arrive whose time has come, in one goroutine at a time, so that the order stays.
func (l *link) land() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.landing {
		return // it looks again
	}
	l.landing = true
	for len(l.queue) > 0 && !l.queue[0].at.After(time.Now()) {
		f := l.queue[0]
		l.queue = l.queue[1:]
		l.mu.Unlock()
		f.arrive()
		l.mu.Lock()
	}
	l.landing = false
}

// sleep is time.Sleep that gives nothing up for no time.
func sleep(d time.Duration) {
	if d > 0 {
		time.Sleep(d)
	}
}
