package fused

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// looksOf counts the reads of a background reader that ended because their time was over.
type looksOf struct {
	net.Conn
	n atomic.Int32
}

func (l *looksOf) SetReadDeadline(t time.Time) error {
	if t == past {
		l.n.Add(1)
	}
	return l.Conn.SetReadDeadline(t)
}

// within is how many there are in d.
func (l *looksOf) within(d time.Duration) int32 {
	before := l.n.Load()
	time.Sleep(d)
	return l.n.Load() - before
}

// read has the background reader read for one open stream in a bubble.
func read(t *testing.T, peerPings time.Duration, do func(c *clientSession, st *stream, looks *looksOf, far net.Conn)) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		looks := &looksOf{Conn: near}
		c := &clientSession{session: newSession(looks, true, &Config{Window: minWindow, MaxRecvMsgSize: defaultMaxRecv}),
			background: make(chan struct{}, 1), tendDone: make(chan struct{}), idleEvery: peerPings}
		c.use(looks)
		st := newStream(c.session, 1)
		must(t, c.enter(st))
		go c.backgroundReader()
		time.Sleep(time.Second)
		do(c, st, looks, far)
		c.close(net.ErrClosed)
		far.Close()
	})
}

// Looks of a thousand connections would take what their calls need. What comes makes them frequent again.
func TestTheBackgroundReaderLooksSeldomWhereNothingComes(t *testing.T) {
	read(t, 0, func(c *clientSession, st *stream, looks *looksOf, far net.Conn) {
		most := int32(10 * time.Second / (backgroundMost + backgroundEvery))
		if n := looks.within(10 * time.Second); n < most-1 || n > most+1 {
			t.Errorf("%d looks in 10 s at a silent stream, want %d", n, most)
		}
		go far.Write(frameOf(fData|fFirst, 1, []byte{1}))
		if n := looks.within(backgroundMost + 100*time.Millisecond); n < 3 || st.find() == nil {
			t.Errorf("%d looks until 100 ms behind a message", n)
		}
		time.Sleep(time.Second)
		c.wakeReader()
		if n := looks.within(100 * time.Millisecond); n < 2 {
			t.Errorf("%d looks in 100 ms behind a reset", n)
		}
		c.pinged.Store(true)
		time.Sleep(backgroundMost)
		if n := looks.within(time.Second); n < 45 {
			t.Errorf("%d looks in 1 s for the answer to a ping", n)
		}
		c.pinged.Store(false)
		c.leave(st.id)
		time.Sleep(time.Second)
		if n := looks.within(time.Minute); n != 0 {
			t.Errorf("%d looks in a minute without a stream", n)
		}
	})
	const pings = 40 * time.Millisecond
	read(t, pings, func(_ *clientSession, _ *stream, looks *looksOf, _ net.Conn) {
		if n := looks.within(time.Second); n < 18 || n > 21 {
			t.Errorf("%d looks in 1 s at a peer whose pings want one in %v", n, pings)
		}
	})
}
