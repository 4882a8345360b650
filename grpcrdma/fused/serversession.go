package fused

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
)

// serverSession is a server's connection. One goroutine reads, and runs quick handlers itself (inline.go).
type serverSession struct {
	*session
	srv              *Server
	inline           inline
	authority, agent []string
	readDone         chan struct{} // closed by the reader that saw the end
	ctx              context.Context
	cancel           context.CancelFunc
	handlers         sync.WaitGroup
	calls            map[uint32]*serverStream // the reader's and, to leave, the handlers'
	callsMu          sync.Mutex
	greeted          bool // guarded by callsMu, as draining is
	draining         bool
	over             bool          // no call begins any more
	idleSince        time.Time     // with MaxConnectionIdle: when the last call ended
	lastID           atomic.Uint32 // the highest that was begun; set under callsMu
	seen             uint32        // the highest that was opened; the reader's
}

func newServerSession(s *Server, conn net.Conn) *serverSession {
	ss := &serverSession{session: newSession(conn, false, &s.cfg), srv: s, calls: map[uint32]*serverStream{},
		readDone: make(chan struct{})}
	ss.inline.ss, ss.inline.timer = ss, time.AfterFunc(time.Hour, ss.inline.poll)
	ss.inline.timer.Stop()
	ss.await = ss.awaitEvent
	ss.ctx, ss.cancel = context.WithCancel(context.Background())
	return ss
}

// run serves the connection until it ends, and joins its handlers.
func (ss *serverSession) run() {
	defer ss.srv.forget(ss)
	defer ss.cancel()
	greeting, cancel := context.WithTimeout(ss.ctx, ss.srv.cfg.ConnectionTimeout)
	defer cancel()
	if err := ss.secure(greeting, &ss.srv.cfg); err != nil {
		ss.fail(err)
		return
	}
	ctx := peer.NewContext(ss.ctx, ss.peer())
	for _, h := range ss.srv.obs.list {
		ctx = h.TagConn(ctx, &stats.ConnTagInfo{RemoteAddr: ss.conn.RemoteAddr(), LocalAddr: ss.conn.LocalAddr()})
		h.HandleConn(ctx, &stats.ConnBegin{})
	}
	ss.ctx = ctx
	own := hello{streams: ss.srv.cfg.MaxStreams}
	if ss.pingTime > 0 {
		own.pings = ss.pingLimit
	}
	hi, err := ss.greet(greeting, own)
	cancel()
	ss.authority, ss.agent = []string{hi.authority}, []string{hi.agent}
	if err == nil && ss.open() {
		stop := ss.tend()
		go ss.readLoop()
		<-ss.readDone
		stop()
	}
	ss.cancel()
	ss.handlers.Wait()
	ss.closeWriteQueue()
	ss.inline.timer.Stop()
	for _, h := range ss.srv.obs.list {
		h.HandleConn(ctx, &stats.ConnEnd{})
	}
}

// awaitEvent waits for an event of a stream. A handler that a reader runs gives the reader's role up first.
func (ss *serverSession) awaitEvent(ctx context.Context, st *stream, ev event) error {
	if st.ready(ev) {
		return nil
	}
	ss.inline.giveUp(st)
	w := st.sleeper(ev)
	for !st.ready(ev) {
		select {
		case <-w.ch:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// handle is the reader's half of the protocol. It writes nothing: two readers that wait to write could wait for ever.
func (ss *serverSession) handle(f *frame) error {
	if f.has(fHeader | fTrailer) {
		return fmt.Errorf("%w: flags %#x from a client", errFrame, uint8(f.flags))
	}
	if f.kind == kindStream && f.has(fOpen) {
		return ss.begin(f)
	}
	if f.kind >= kindPing {
		if f.kind == kindPing && !ss.pong.Swap(true) { // a reader writes nothing
			ss.handlers.Go(func() {
				ss.pong.Store(false)
				ss.send(kindPong, 0, 0, nil, 0, nil) // a failure is the connection's end
			})
		}
		return f.empty()
	}
	if f.kind >= kindGrant {
		return ss.granted(f)
	}
	st := ss.find(f.stream)
	if st == nil {
		switch {
		case f.kind != kindStream && f.kind != kindWindow && f.kind != kindReset:
			return fmt.Errorf("%w: kind %d from a client", errFrame, f.kind)
		case f.stream > ss.seen:
			return fmt.Errorf("%w: for stream %d, which was never open", errFrame, f.stream)
		case f.has(fSink):
			return ss.drop(f.key, f.total)
		}
		return nil // on its way when the call ended
	}
	switch f.kind {
	case kindStream:
		if err := st.deliver(f); err != nil {
			return err
		}
		if f.has(fEnd) {
			ss.startHeld(f.stream)
		}
		return nil
	case kindWindow:
		return st.widen(f)
	case kindReset:
		ss.callsMu.Lock()
		call := ss.calls[f.stream]
		ss.callsMu.Unlock()
		if call != nil {
			st.fail(context.Canceled)
			call.cancel()
			ss.startHeld(f.stream) // to its end
		}
		return nil
	}
	return fmt.Errorf("%w: kind %d from a client", errFrame, f.kind)
}

func (ss *serverSession) begin(f *frame) error {
	o, err := parseOpen(f.open)
	if err != nil {
		return err
	}
	st := newStream(ss.session, f.stream)
	if err := st.deliver(f); err != nil {
		return err
	}
	ss.seen = max(ss.seen, f.stream)
	ss.callsMu.Lock()
	defer ss.callsMu.Unlock()
	if ss.over {
		return nil
	}
	ss.lastID.Store(max(ss.lastID.Load(), f.stream))
	switch {
	case ss.calls[f.stream] != nil:
		return fmt.Errorf("%w: stream %d is open already", errFrame, f.stream)
	case len(ss.calls) >= ss.srv.cfg.MaxStreams:
		return fmt.Errorf("%w: more than %d streams", errFrame, ss.srv.cfg.MaxStreams)
	}
	if err := ss.enter(st); err != nil {
		return err
	}
	if o.md == nil {
		o.md = make(metadata.MD, 3)
	}
	if o.md[":authority"] == nil { // else the call has its own
		o.md[":authority"] = ss.authority
	}
	o.md["user-agent"], o.md["content-type"] = ss.agent, contentType(o.codec)
	call := &serverStream{ss: ss, st: st, open: o, wire: headerLen + len(f.open)}
	ctx := metadata.NewIncomingContext(ss.ctx, o.md)
	if o.timeout > 0 {
		call.ctx, call.cancel = context.WithTimeout(ctx, o.timeout)
	} else {
		call.ctx, call.cancel = context.WithCancel(ctx)
	}
	ss.calls[f.stream] = call
	call.sv, call.name = ss.srv.find(o.method)
	call.pace = call.sv.paces[call.name]
	switch {
	case call.pace == nil:
	case f.has(fEnd):
		if call.pace.quick() {
			ss.inline.next = call
			return nil
		}
	case f.has(fFirst) && f.total <= min(ss.window, ss.maxRecv):
		// All of it may come without a window from the handler, which has nothing to do before.
		call.held = true
		return nil
	}
	ss.start(call)
	return nil
}

// startHeld starts the handler of a call whose request is whole, or given up. A reader runs it where nobody else needs
// the reader: the request was long, and so may be the work on it.
func (ss *serverSession) startHeld(id uint32) {
	ss.callsMu.Lock()
	defer ss.callsMu.Unlock()
	call := ss.calls[id]
	if call == nil || !call.held {
		return
	}
	call.held = false
	if len(ss.calls) == 1 && ss.inline.next == nil && call.pace.quick() {
		ss.inline.next = call
		return
	}
	ss.start(call)
}

func (ss *serverSession) start(call *serverStream) {
	ss.out.roused.Add(1)
	ss.handlers.Go(call.run)
}

func (ss *serverSession) end(call *serverStream) {
	ss.leave(call.st.id)
	ss.callsMu.Lock()
	delete(ss.calls, call.st.id)
	last := ss.draining && len(ss.calls) == 0
	if ss.srv.cfg.MaxConnectionIdle > 0 && len(ss.calls) == 0 {
		ss.idleSince = time.Now()
	}
	ss.over = ss.over || last
	ss.callsMu.Unlock()
	if last {
		ss.leaveInOrder()
	}
}

// leaveInOrder names the last call that began, so that later ones may go elsewhere, and ends the connection.
func (ss *serverSession) leaveInOrder() {
	ss.send(kindGoAway, 0, 0, nil, 0, binary.LittleEndian.AppendUint32(nil, ss.lastID.Load()))
	ss.drainWriteQueue()
	ss.fail(net.ErrClosed)
}

// age ends the connection in order when it is old, and at once after the grace, unless over is closed before.
func (ss *serverSession) age(over <-chan struct{}) {
	most, grace := ss.srv.cfg.MaxConnectionAge, ss.srv.cfg.MaxConnectionAgeGrace
	// Within a tenth, as gRPC, so that connections made together do not end together.
	most += time.Duration((rand.Float64()*0.2 - 0.1) * float64(most))
	t := time.NewTimer(most)
	defer t.Stop()
	select {
	case <-t.C:
	case <-over:
		return
	}
	ss.drain()
	if grace <= 0 {
		return
	}
	t.Reset(grace)
	select {
	case <-t.C:
		ss.fail(errAge)
	case <-over:
	}
}

var errAge = errors.New("the connection is older than the server lets it be")

// open notes that hellos were exchanged; it returns false when the server stopped meanwhile.
func (ss *serverSession) open() bool {
	ss.callsMu.Lock()
	defer ss.callsMu.Unlock()
	ss.greeted = true
	return !ss.draining
}

// drain asks the client to open no more calls here, and ends the connection after the last one. One without hellos ends
// at once.
func (ss *serverSession) drain() {
	ss.callsMu.Lock()
	greeted := ss.greeted
	ss.draining = !greeted
	ss.callsMu.Unlock()
	if !greeted {
		ss.fail(net.ErrClosed)
		return
	}
	ss.send(kindGoAway, 0, 0, nil, 0, nil)
	ss.callsMu.Lock()
	ss.draining = true
	last := len(ss.calls) == 0
	ss.over = last
	ss.callsMu.Unlock()
	if last {
		ss.leaveInOrder()
	}
}
