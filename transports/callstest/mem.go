package callstest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Mem carries calls in memory. Every message is copied and arrives in pieces, so that who keeps what was lent, or
// believes that messages lie in one piece, is found. The zero value is ready; two ends are one Mem.
type Mem struct {
	// Piece is the longest piece of what arrives in bytes; 0: 1000.
	Piece int

	mu      sync.Mutex
	servers map[string]*memServer
	made    int
}

var _ transports.CallTransport = (*Mem)(nil)

// Name is "calls".
func (m *Mem) Name() string { return "calls" }

// Caps has all modes.
func (m *Mem) Caps() transports.Caps {
	return transports.Caps{Label: rdma.LabelMem, Kinds: transports.Kinds(transports.KindCall), InProcess: true,
		MaxMsg:    math.MaxInt32,
		CallModes: transports.CallModes(transports.CallUnary, transports.CallStream, transports.CallOneWay)}
}

// CallCost costs nothing worth saying.
func (m *Mem) CallCost() transports.CallCost { return transports.CallCost{Form: "mem"} }

// Close ends all servers.
func (m *Mem) Close() error {
	m.mu.Lock()
	var open []*memServer
	for _, s := range m.servers {
		open = append(open, s)
	}
	m.mu.Unlock()
	for _, s := range open {
		s.Close()
	}
	return nil
}

// ListenCalls ignores addr and makes a name.
func (m *Mem) ListenCalls(_ context.Context, _ string, cfg transports.CallConfig,
	h transports.CallHandler) (transports.CallServer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.made++
	s := &memServer{mem: m, h: h, secret: string(cfg.Secret), addr: fmt.Sprintf("@calls-%d", m.made)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if m.servers == nil {
		m.servers = map[string]*memServer{}
	}
	m.servers[s.addr] = s
	return s, nil
}

// DialCalls finds a server of this Mem.
func (m *Mem) DialCalls(_ context.Context, addr string, cfg transports.CallConfig) (transports.CallConn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.servers[addr]
	if !ok {
		return nil, fmt.Errorf("connect to %q: %w", addr, rdma.ErrUnreachable)
	}
	if s.secret != string(cfg.Secret) {
		return nil, fmt.Errorf("connect to %q: %w", addr, rdma.ErrRejected)
	}
	c := &memConn{s: s}
	c.ctx, c.cancel = context.WithCancel(s.ctx)
	return c, nil
}

type memServer struct {
	mem    *Mem
	h      transports.CallHandler
	addr   string
	secret string
	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex // of closed and of adding to calls
	closed bool
	calls  sync.WaitGroup
}

func (s *memServer) Addr() string { return s.addr }

func (s *memServer) Close() error {
	s.mem.mu.Lock()
	delete(s.mem.servers, s.addr)
	s.mem.mu.Unlock()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.calls.Wait()
	return nil
}

var errGone = &transports.CallError{Code: transports.CallUnavailable, Text: "the server has gone"}

type answer struct {
	response []byte
	err      error
}

func (s *memServer) serve(ctx context.Context, mode transports.CallMode, method uint8, request []byte,
	done chan<- answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		done <- answer{err: errGone}
		return
	}
	own := append([]byte(nil), request...)
	s.calls.Go(func() {
		r := &transports.Served{Ctx: ctx, Mode: mode, Method: method, Request: s.mem.pieces(own)}
		err := s.h.ServeCall(r)
		for i := range own { // it was lent until the handler returned
			own[i] = 0xdd
		}
		a := answer{err: err}
		if err == nil {
			a.response = append(a.response, r.Response...)
			if r.Owner != nil {
				r.Owner.Release()
			}
		}
		done <- a
	})
}

func (m *Mem) pieces(b []byte) (p transports.Parts) {
	piece := cmp.Or(m.Piece, 1000)
	for len(b) > 0 {
		n := min(piece, len(b))
		p = append(p, b[:n])
		b = b[n:]
	}
	return p
}

type memConn struct {
	s      *memServer
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
}

func (c *memConn) Close() error {
	c.cancel()
	return nil
}

func (c *memConn) Caller(ctx context.Context, cfg transports.CallerConfig) (transports.Caller, error) {
	if err := cfg.Check(c.s.mem.Caps().CallModes); err != nil {
		return nil, err
	}
	k := &memCaller{conn: c, cfg: cfg}
	k.ctx, k.cancel = context.WithCancel(ctx)
	return k, nil
}

type memCaller struct {
	conn   *memConn
	cfg    transports.CallerConfig
	ctx    context.Context
	cancel context.CancelFunc
	lent   []byte
	sent   int64
}

func (k *memCaller) Call(c *transports.Call) error {
	method, err := k.cfg.MethodOf(c)
	if err != nil {
		return err
	}
	k.Free()
	a := k.exchange(method, c.Request)
	if a.err != nil {
		return a.err
	}
	k.lent = a.response
	c.Response = k.conn.s.mem.pieces(a.response)
	return nil
}

func (k *memCaller) exchange(method uint8, request []byte) answer {
	ctx, cancel := k.ctx, context.CancelFunc(func() {})
	if k.cfg.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, k.cfg.Timeout)
	}
	defer cancel()
	handler, end := context.WithCancel(k.conn.ctx)
	unhook := context.AfterFunc(ctx, end)
	defer unhook()
	defer end()
	done := make(chan answer, 1)
	k.conn.s.serve(handler, k.cfg.Mode, method, request, done)
	select {
	case a := <-done:
		switch {
		case a.err == nil:
			k.sent++
			return a
		case k.conn.ctx.Err() == nil && ctx.Err() == nil:
			return answer{err: transports.AsCallError(a.err)}
		}
	case <-ctx.Done():
	case <-k.conn.ctx.Done():
	}
	switch {
	case k.conn.s.ctx.Err() != nil:
		return answer{err: errGone}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return answer{err: &transports.CallError{Code: transports.CallDeadlineExceeded, Text: "no answer in time"}}
	}
	return answer{err: &transports.CallError{Code: transports.CallCanceled, Text: "given up"}}
}

func (k *memCaller) Send(c *transports.Call) error {
	if k.cfg.Mode != transports.CallOneWay {
		return transports.WrongMode(k.cfg.Mode)
	}
	return k.exchange(k.cfg.Method, c.Request).err
}

func (k *memCaller) End() (int64, error) { return k.sent, nil }

func (k *memCaller) Free() {
	for i := range k.lent { // it was lent until now
		k.lent[i] = 0xdd
	}
	k.lent = nil
}

func (k *memCaller) Close() error {
	k.Free()
	k.cancel()
	return nil
}

const soon = 30 * time.Second
