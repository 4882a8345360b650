package fused

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
)

// serverSession is a server's connection. One goroutine reads, and runs what is
// quick itself (inline.go); every other call has its own.
type serverSession struct {
	*session
	srv      *Server
	inline   inline
	readDone chan struct{} // closed by the reader that saw the end
	ctx      context.Context
	cancel   context.CancelFunc
	handlers sync.WaitGroup
	calls    map[uint32]*serverStream // the reader's and, to leave, the handlers'
	callsMu  sync.Mutex
	draining bool   // guarded by callsMu
	lastID   uint32 // the highest that was opened; the reader's
}

func newServerSession(s *Server, conn net.Conn) *serverSession {
	ss := &serverSession{session: newSession(conn, false, &s.cfg), srv: s, calls: map[uint32]*serverStream{},
		readDone: make(chan struct{})}
	ss.inline.init(ss)
	ss.await = ss.awaitEvent
	ss.ctx, ss.cancel = context.WithCancel(peer.NewContext(context.Background(), peerOf(conn)))
	return ss
}

// run serves the connection until it ends, and joins its handlers.
func (ss *serverSession) run() {
	defer ss.srv.forget(ss)
	ctx := ss.ctx
	for _, h := range ss.srv.obs.list {
		ctx = h.TagConn(ctx, &stats.ConnTagInfo{RemoteAddr: ss.conn.RemoteAddr(), LocalAddr: ss.conn.LocalAddr()})
		h.HandleConn(ctx, &stats.ConnBegin{})
	}
	ss.ctx = ctx
	if _, err := ss.greet(ctx, hello{ss.window, ss.srv.cfg.MaxStreams, ss.land.conn != nil}); err == nil {
		go ss.readLoop()
		<-ss.readDone
	}
	ss.cancel()
	ss.handlers.Wait()
	ss.closeOutbox()
	ss.inline.timer.Stop()
	for _, h := range ss.srv.obs.list {
		h.HandleConn(ctx, &stats.ConnEnd{})
	}
}

// awaitEvent waits for an event of a stream, which a reader brings: a handler that
// is run by one gives the role up first.
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

// handle is the reader's half of the protocol. It writes nothing: a reader that
// waits for its peer to read could wait for ever.
func (ss *serverSession) handle(f *frame) error {
	if f.kind == kindStream && f.has(fOpen) {
		return ss.begin(f)
	}
	if f.kind >= kindGrant {
		return ss.granted(f)
	}
	st := ss.find(f.stream)
	if st == nil {
		switch {
		case f.kind != kindStream && f.kind != kindWindow && f.kind != kindReset:
			return fmt.Errorf("%w: kind %d from a client", errFrame, f.kind)
		case f.stream > ss.lastID:
			return fmt.Errorf("%w: for stream %d, which was never open", errFrame, f.stream)
		case f.has(fLanded):
			return ss.drop(f.key, f.total)
		}
		return nil // on its way when the call ended
	}
	switch f.kind {
	case kindStream:
		if f.has(fHeader | fTrailer) {
			return fmt.Errorf("%w: flags %#x from a client", errFrame, uint8(f.flags))
		}
		if err := st.deliver(f); err != nil {
			return err
		}
		if f.has(fEnd) {
			ss.startHeld(f.stream)
		}
		return nil
	case kindWindow:
		d := decoder{b: f.data}
		n := d.u32()
		if d.bad {
			return errWindow
		}
		return st.widen(n)
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

// begin starts the handler of a call.
func (ss *serverSession) begin(f *frame) error {
	o, err := parseOpen(f.open)
	if err != nil {
		return err
	}
	if f.has(fHeader | fTrailer) {
		return fmt.Errorf("%w: flags %#x from a client", errFrame, uint8(f.flags))
	}
	st := newStream(ss.session, f.stream)
	if err := st.deliver(f); err != nil {
		return err
	}
	ss.lastID = max(ss.lastID, f.stream)
	ss.callsMu.Lock()
	defer ss.callsMu.Unlock()
	switch {
	case ss.calls[f.stream] != nil:
		return fmt.Errorf("%w: stream %d is open already", errFrame, f.stream)
	case len(ss.calls) >= ss.srv.cfg.MaxStreams:
		return fmt.Errorf("%w: more than %d streams", errFrame, ss.srv.cfg.MaxStreams)
	}
	if err := ss.enter(st); err != nil {
		return err
	}
	call := &serverStream{ss: ss, st: st, open: o}
	ctx := ss.ctx
	if o.md == nil {
		o.md = metadata.MD{}
	}
	ctx = metadata.NewIncomingContext(ctx, o.md)
	if o.timeout > 0 {
		call.ctx, call.cancel = context.WithTimeout(ctx, o.timeout)
	} else {
		call.ctx, call.cancel = context.WithCancel(ctx)
	}
	ss.calls[f.stream] = call
	call.sv, call.name = ss.srv.find(o.method)
	if call.sv != nil {
		call.pace = call.sv.paces[call.name]
	}
	switch {
	case call.pace == nil:
	case f.has(fEnd):
		if call.pace.quick() {
			ss.inline.next = call
			return nil
		}
	case f.has(fFirst) && f.total <= min(ss.window, ss.maxRecv):
		// All of it may come without a word of the handler's, which has nothing to do before.
		call.held = true
		return nil
	}
	ss.start(call)
	return nil
}

// startHeld starts the handler of a call whose request is whole, or given up, if
// that waited. The reader runs it where nobody else waits for the reader: the
// request was long, and so may be the work on it.
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

// start gives a call a goroutine.
func (ss *serverSession) start(call *serverStream) {
	ss.out.roused.Add(1)
	ss.handlers.Go(call.run)
}

// end forgets a call; the last one ends a connection that drains.
func (ss *serverSession) end(call *serverStream) {
	ss.leave(call.st.id)
	ss.callsMu.Lock()
	delete(ss.calls, call.st.id)
	last := ss.draining && len(ss.calls) == 0
	ss.callsMu.Unlock()
	if last {
		ss.drainOutbox()
		ss.fail(net.ErrClosed)
	}
}

// drain asks the client to open no more calls here, and ends the connection
// behind the last one.
func (ss *serverSession) drain() {
	ss.send(kindGoAway, 0, 0, nil, 0, nil)
	ss.callsMu.Lock()
	ss.draining = true
	last := len(ss.calls) == 0
	ss.callsMu.Unlock()
	if last {
		ss.drainOutbox()
		ss.fail(net.ErrClosed)
	}
}
