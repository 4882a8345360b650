package fused

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/stats"
)

// clientSession is a client's connection. Of the callers that wait one leads and reads for all, and hands the role on
// when its own event came. While none waits, the background reader reads for the open streams.
type clientSession struct {
	*session
	stats []stats.Handler
	ctx   context.Context // of stats handlers
	slots chan struct{}   // a place for every stream the server takes at once

	lead struct {
		sync.Mutex
		taken     bool
		followers []*waiter
	}

	// The end of the leader's context interrupts its read by the read deadline; turn tells a late interrupt that its
	// leader has gone. A call that watches its context interrupts the leader by its stream.
	interrupt struct {
		sync.Mutex
		turn   uint64
		leader *stream
		hit    bool
	}

	idMu   sync.Mutex
	lastID uint32

	background chan struct{} // token: streams need the background reader, or there are resets to send
	tendDone   chan struct{}
	idleEvery  time.Duration // how often the background reader looks for pings without streams; 0 for never
	pinging    chan struct{} // closed when pings end; nil: there were none
	resetMu    sync.Mutex
	resets     []uint32

	draining chan struct{} // closed at GoAway
	drained  sync.Once
}

// backgroundEvery is how often, and how long, the background reader reads for open streams. Arbitrary: it bounds how
// long an abandoned stream can hold up the server. Where callers read themselves, or nothing comes, it looks ever more
// seldom, down to backgroundMost: else looks took a quarter of the CPU of streams over 1,024 connections.
const (
	backgroundEvery = 10 * time.Millisecond
	backgroundMost  = 320 * time.Millisecond
)

var past = time.Unix(1, 0)

func dialSession(ctx context.Context, conn net.Conn, cfg *Config) (*clientSession, error) {
	c := &clientSession{session: newSession(conn, true, cfg), background: make(chan struct{}, 1),
		tendDone: make(chan struct{}), draining: make(chan struct{})}
	c.await = c.awaitEvent
	ctx, cancel := context.WithTimeout(ctx, cfg.ConnectionTimeout)
	defer cancel()
	var peer hello
	err := c.secure(ctx, cfg)
	if err == nil {
		peer, err = c.greet(ctx, hello{streams: maxStreams, authority: cfg.authority(conn), agent: cfg.agent()})
	}
	if err != nil {
		c.fail(err)
		return nil, fmt.Errorf("greet %v: %w", conn.RemoteAddr(), err)
	}
	c.slots = make(chan struct{}, peer.streams)
	c.stats = cfg.StatsHandlers
	c.ctx = context.Background()
	for _, h := range c.stats {
		c.ctx = h.TagConn(c.ctx, &stats.ConnTagInfo{RemoteAddr: c.conn.RemoteAddr(), LocalAddr: c.conn.LocalAddr()})
		h.HandleConn(c.ctx, &stats.ConnBegin{Client: true})
	}
	if peer.pings > 0 {
		c.idleEvery = max(peer.pings/answerLooks, backgroundEvery)
	}
	go c.backgroundReader()
	if c.pingTime > 0 {
		c.pinging = make(chan struct{})
		go func() {
			defer close(c.pinging)
			c.ping(nil, func() bool { return cfg.PingIdle || c.live() > 0 }, c.wakeReader)
		}()
	}
	return c, nil
}

func (c *clientSession) close(why error) {
	c.fail(why)
	<-c.tendDone
	if c.pinging != nil {
		<-c.pinging
	}
	c.closeWriteQueue()
	for _, h := range c.stats {
		h.HandleConn(c.ctx, &stats.ConnEnd{Client: true})
	}
}

func (c *clientSession) open(ctx context.Context) (*stream, error) {
	select {
	case c.slots <- struct{}{}:
	default:
		select {
		case c.slots <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, c.cause()
		}
	}
	c.idMu.Lock()
	c.lastID++
	id := c.lastID
	c.idMu.Unlock()
	st := newStream(c.session, id)
	if err := c.enter(st); err != nil {
		<-c.slots
		return nil, err
	}
	return st, nil
}

func (c *clientSession) handle(f *frame) error {
	if f.kind == kindGoAway {
		return c.goAway(f)
	}
	if f.kind >= kindPing {
		if f.kind == kindPing {
			c.pong.Store(true)
			c.wakeReader()
		}
		return f.empty()
	}
	if f.kind >= kindGrant {
		return c.granted(f)
	}
	st := c.find(f.stream)
	if st == nil {
		return fmt.Errorf("%w: for stream %d, which is not open", errFrame, f.stream)
	}
	switch f.kind {
	case kindStream:
		if f.has(fOpen) || f.has(fEnd) && !f.has(fTrailer) {
			return fmt.Errorf("%w: flags %#x from a server", errFrame, uint8(f.flags))
		}
		if err := st.deliver(f); err != nil {
			return err
		}
		if f.has(fEnd) {
			c.forget(st)
		}
		return nil
	case kindWindow:
		return st.widen(f)
	}
	return fmt.Errorf("%w: kind %d from a server", errFrame, f.kind)
}

// goAway: the server takes no more calls here. With a number it ends the connection, and knows of no later call.
func (c *clientSession) goAway(f *frame) error {
	c.drained.Do(func() { close(c.draining) })
	if len(f.data) == 0 {
		return nil
	}
	d := decoder{b: f.data}
	last := d.u32()
	if d.bad || len(d.b) > 0 {
		return fmt.Errorf("%w: goaway with %d bytes", errFrame, len(f.data))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, st := range c.streams {
		if id > last {
			st.retract(notSent{unavailable(errGone)})
		}
	}
	return nil
}

var errGone = errors.New("the server has ended the connection in order")

func (c *clientSession) takesCalls() bool {
	select {
	case <-c.done:
		return false
	case <-c.draining:
		return false
	default:
		return true
	}
}

func (c *clientSession) forget(st *stream) {
	if c.leave(st.id) {
		<-c.slots
	}
}

// abandon drops what still comes for a stream, and has the server told. Its place is free when the server has ended it.
func (c *clientSession) abandon(st *stream) {
	st.mu.Lock()
	over := st.ended || st.dropped
	st.dropped = true
	st.queue = nil
	st.mu.Unlock()
	if over || c.find(st.id) == nil {
		return
	}
	c.resetMu.Lock()
	c.resets = append(c.resets, st.id)
	c.resetMu.Unlock()
	c.wakeReader()
}

func (c *clientSession) wakeReader() {
	select {
	case c.background <- struct{}{}:
	default:
	}
}

// awaitEvent waits for an event of a stream, and reads for all if no other caller does.
func (c *clientSession) awaitEvent(ctx context.Context, st *stream, ev event) error {
	for !st.ready(ev) {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.lead.Lock()
		if !c.lead.taken {
			c.lead.taken = true
			c.lead.Unlock()
			c.readUntil(ctx, st, ev)
			c.handOn()
			continue
		}
		c.lead.Unlock()
		w := st.sleeper(ev)
		c.lead.Lock()
		if !c.lead.taken {
			c.lead.Unlock()
			continue
		}
		c.lead.followers = append(c.lead.followers, w)
		c.lead.Unlock()
		switch {
		case st.ready(ev):
		case st.watched: // the end of ctx fails the stream, which signals: no need of a select
			<-w.ch
		default:
			select {
			case <-w.ch:
			case <-ctx.Done():
			}
		}
		c.lead.Lock()
		handed := w.handed
		w.handed = false
		if i := slices.Index(c.lead.followers, w); i >= 0 {
			c.lead.followers = slices.Delete(c.lead.followers, i, i+1)
		}
		c.lead.Unlock()
		if handed {
			c.readUntil(ctx, st, ev)
			c.handOn()
		}
	}
	return nil
}

// handOn hands the reader's role to a waiting caller, or gives it up.
func (c *clientSession) handOn() {
	c.lead.Lock()
	defer c.lead.Unlock()
	if len(c.lead.followers) == 0 {
		c.lead.taken = false
		return
	}
	w := c.lead.followers[0]
	c.lead.followers = slices.Delete(c.lead.followers, 0, 1)
	w.handed = true
	select {
	case w.ch <- struct{}{}:
	default:
	}
}

// readUntil reads frames until the event came, or the context or the connection ended. The background reader has no
// stream, and ends when a caller waits, too. It reports whether something came.
func (c *clientSession) readUntil(ctx context.Context, st *stream, ev event) (came bool) {
	switch {
	case ctx.Done() == nil:
	case st != nil && st.watched:
		c.interrupt.Lock()
		c.interrupt.leader = st
		c.interrupt.Unlock()
		defer func() {
			c.interrupt.Lock()
			defer c.interrupt.Unlock()
			c.interrupt.leader = nil
			if c.interrupt.hit {
				c.interrupt.hit = false
				c.conn.SetReadDeadline(time.Time{})
			}
		}()
	default:
		c.interrupt.Lock()
		turn := c.interrupt.turn
		c.interrupt.Unlock()
		stop := context.AfterFunc(ctx, func() {
			c.interrupt.Lock()
			defer c.interrupt.Unlock()
			if c.interrupt.turn == turn {
				c.conn.SetReadDeadline(past)
			}
		})
		defer func() {
			if !stop() {
				c.interrupt.Lock()
				c.interrupt.turn++
				c.conn.SetReadDeadline(time.Time{})
				c.interrupt.Unlock()
			}
		}()
	}
	for ctx.Err() == nil && c.cause() == nil {
		if st != nil && st.ready(ev) || st == nil && c.wanted() {
			return came
		}
		if c.r.Buffered() == 0 {
			c.yield()
		}
		came = c.read(c.handle) == nil || came // a failure ends the session, a timeout is the context's end
	}
	return came
}

func (c *clientSession) interruptLeader(st *stream) {
	c.interrupt.Lock()
	defer c.interrupt.Unlock()
	if c.interrupt.leader == st {
		c.interrupt.hit = true
		c.conn.SetReadDeadline(past)
	}
}

func (c *clientSession) wanted() bool {
	c.lead.Lock()
	defer c.lead.Unlock()
	return len(c.lead.followers) > 0
}

// backgroundReader sends resets and pongs, and reads for open streams that nobody waits on: a full ring of an abandoned
// stream would hold up the whole connection.
func (c *clientSession) backgroundReader() {
	defer close(c.tendDone)
	tick := time.NewTimer(time.Hour)
	defer tick.Stop()
	every := backgroundEvery
	for {
		c.sendResets()
		tick.Reset(c.nextLook(every))
		select {
		case <-tick.C:
		case <-c.background:
			every = backgroundEvery
			continue
		case <-c.done:
			return
		}
		c.lead.Lock()
		free := !c.lead.taken
		c.lead.taken = true
		c.lead.Unlock()
		every = min(2*every, backgroundMost)
		if free {
			ctx, cancel := context.WithTimeout(context.Background(), backgroundEvery)
			if c.readUntil(ctx, nil, 0) {
				every = backgroundEvery
			}
			cancel()
			c.handOn()
		}
	}
}

// nextLook is when the background reader looks again: soon for the answer to a ping, in time to answer the peer's
// pings, and after every for open streams.
func (c *clientSession) nextLook(every time.Duration) time.Duration {
	switch {
	case c.pinged.Load():
		return backgroundEvery
	case c.live() == 0:
		return cmp.Or(c.idleEvery, time.Hour)
	}
	return min(every, cmp.Or(c.idleEvery, every))
}

func (c *clientSession) sendResets() {
	if c.pong.Swap(false) {
		c.send(kindPong, 0, 0, nil, 0, nil) // a failure is the connection's end
	}
	c.resetMu.Lock()
	ids := c.resets
	c.resets = nil
	c.resetMu.Unlock()
	for _, id := range ids {
		if c.find(id) != nil {
			c.send(kindReset, 0, id, nil, 0, binary.LittleEndian.AppendUint32(nil, 0))
		}
	}
}
