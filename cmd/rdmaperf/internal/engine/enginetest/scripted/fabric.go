// Package scripted is a stack whose every time is given. In a bubble of [testing/synctest] an operation takes what
// [Times] says, to the nanosecond, and all else takes none. A message leaves when the one before it on its way has
// left; without a receive it waits for one. A poll in vain waits Times.Idle at most: this is what moves the clock.
package scripted

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/callstest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Fabric joins the two ends. Its fields are set before anything is opened.
type Fabric struct {
	Times   Times
	Local   bool // completions say that a message has left, not that it arrived
	Steps   bool // ping-pongs in steps, by Session.PingPong
	NoWatch bool // the last byte of a write is no mark of its arrival
	Apart   bool // it passes for two processes

	client, server *side

	mu        sync.Mutex
	listeners map[string]*listener
	windows   []rdma.Buffer
	next      int
}

// Ends opens both ends of a fabric, which lives until Close.
func (f *Fabric) Ends() (client, server *Stack) {
	f.client, f.server = newSide(), newSide()
	f.listeners = map[string]*listener{}
	calls := new(callstest.Mem)
	return &Stack{f, calls}, &Stack{f, calls}
}

// Close frees the windows of all sessions, which nothing may use any more.
func (f *Fabric) Close() error {
	var errs []error
	for _, w := range f.windows {
		errs = append(errs, w.Free())
	}
	f.windows = nil
	return errors.Join(errs...)
}

// Stack is one end. It makes sessions and carries calls.
type Stack struct {
	f     *Fabric
	calls *callstest.Mem
}

func (s *Stack) Name() string { return "scripted" }
func (s *Stack) Close() error { return nil }

// CallCost costs nothing.
func (s *Stack) CallCost() transports.CallCost { return transports.CallCost{Form: "scripted"} }

// DialCalls takes Times.Connect.
func (s *Stack) DialCalls(ctx context.Context, addr string, cfg transports.CallConfig) (transports.CallConn, error) {
	sleep(s.f.Times.Connect)
	return s.calls.DialCalls(ctx, addr, cfg)
}

// ListenCalls serves calls that take the whole round trip in the handler.
func (s *Stack) ListenCalls(ctx context.Context, addr string, cfg transports.CallConfig,
	h transports.CallHandler) (transports.CallServer, error) {
	return s.calls.ListenCalls(ctx, addr, cfg, slow{s.f, h})
}

type slow struct {
	f *Fabric
	transports.CallHandler
}

func (s slow) ServeCall(c *transports.Served) error {
	sleep(s.f.Times.Out + s.f.Times.Back)
	return s.CallHandler.ServeCall(c)
}

func (s *Stack) Caps() transports.Caps {
	var kinds transports.KindSet
	for k := transports.KindSend; k <= transports.KindCall; k++ {
		kinds |= transports.Kinds(k)
	}
	return transports.Caps{Label: rdma.LabelMem, Kinds: kinds, LastByteLast: !s.f.NoWatch, InProcess: !s.f.Apart,
		Events:   true,
		PingPong: s.f.Steps, PingPongNS: 1, MaxMsg: 1 << 31, MaxInline: 1 << 10, LocalComplete: s.f.Local,
		CallModes: transports.CallModes(transports.CallUnary, transports.CallStream, transports.CallOneWay)}
}

func (f *Fabric) address() string {
	f.next++
	return net.JoinHostPort("127.0.0.1", fmt.Sprint(f.next))
}

type listener struct {
	f     *Fabric
	addr  string
	cfg   transports.Config
	calls chan dialled
}

type dialled struct {
	s     *session
	hello []byte
}

func (s *Stack) Listen(_ context.Context, _ string, cfg transports.Config) (transports.Listener, error) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	l := &listener{s.f, s.f.address(), cfg, make(chan dialled, 1<<10)}
	s.f.listeners[l.addr] = l
	return l, nil
}

func (l *listener) Addr() string { return l.addr }

func (l *listener) Close() error {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	delete(l.f.listeners, l.addr)
	return nil
}

func (l *listener) Accept(ctx context.Context) (transports.Session, []byte, error) {
	select {
	case d := <-l.calls:
		return d.s, d.hello, nil
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
}

func (s *Stack) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session,
	error) {
	f := s.f
	if cfg.Created != nil {
		cfg.Created()
	}
	sleep(f.Times.Connect)
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.listeners[addr]
	if l == nil {
		return nil, errors.New("no server listens at " + addr)
	}
	near, err := f.session(f.client, cfg.Window)
	if err != nil {
		return nil, err
	}
	far, err := f.session(f.server, l.cfg.Window)
	if err != nil {
		return nil, err
	}
	near.peer, far.peer, near.way, far.way = far, near, f.Times.Out, f.Times.Back
	l.calls <- dialled{far, append([]byte(nil), hello...)}
	return near, ctx.Err()
}

// session makes one end. The fabric's lock is held.
func (f *Fabric) session(d *side, size int) (*session, error) {
	w, err := rdma.Alloc(max(size, 1))
	if err != nil {
		return nil, err
	}
	f.windows = append(f.windows, w)
	s := &session{f: f, side: d, mem: w, out: &link{}}
	d.mu.Lock()
	d.sessions[s] = struct{}{}
	d.mu.Unlock()
	return s, nil
}
