// Package enginetest has what tests of the engine, of loops and of workloads share. [Main] sets the workloads.
package enginetest

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Fault wraps a transport and damages what its sessions do.
type Fault struct {
	transports.Transport
	Post func(s transports.Session, ops []transports.Op) (int, error)
	Poll func(s transports.Session, dst []transports.Done) (int, error)
}

type faultSession struct {
	transports.Session
	f *Fault
}

// Caps leave PingPong out: they would pass the damage by.
func (f *Fault) Caps() transports.Caps {
	c := f.Transport.Caps()
	c.PingPong = false
	return c
}

func (f *Fault) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session,
	error) {
	s, err := f.Transport.Dial(ctx, addr, hello, cfg)
	if err != nil {
		return nil, err
	}
	return faultSession{s, f}, nil
}

func (s faultSession) Post(ops []transports.Op) (int, error) {
	if s.f.Post != nil {
		return s.f.Post(s.Session, ops)
	}
	return s.Session.Post(ops)
}

func (s faultSession) Poll(dst []transports.Done) (int, error) {
	if s.f.Poll != nil {
		return s.f.Poll(s.Session, dst)
	}
	return s.Session.Poll(dst)
}

// WithFault wraps the client's side of mem, where every Post is over when it returns.
func WithFault(f *Fault) Ends {
	return func(t testing.TB) (transports.Stack, transports.Stack) {
		client, server := SessionEnds(t, MemEnds)
		f.Transport = client
		return f, server
	}
}

// FlipAfter damages byte at of every data operation from number n on: of the source, or of the sink of a one-sided one.
func FlipAfter(n int64, at uint64) *Fault {
	f := &Fault{}
	var posted atomic.Int64
	var sink, flipped atomic.Uint64
	f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
		for i := range ops {
			op := &ops[i]
			if op.Kind == transports.KindRecv || op.Len == 0 {
				if k, err := s.Post(ops[i : i+1]); k == 0 {
					return i, err
				}
				continue
			}
			bad := posted.Add(1) > n
			where := op.Local + at
			if bad && !engine.OneSided(op.Kind) {
				s.Local()[where] ^= 0x10
			}
			k, err := s.Post(ops[i : i+1])
			if bad && !engine.OneSided(op.Kind) {
				s.Local()[where] ^= 0x10
			}
			if k == 0 {
				return i, err
			}
			sink.Store(where)
		}
		return len(ops), nil
	}
	f.Poll = func(s transports.Session, dst []transports.Done) (int, error) {
		k, err := s.Poll(dst)
		for _, d := range dst[:k] {
			// not back again
			if at := sink.Load(); engine.OneSided(d.Kind) && posted.Load() > n && flipped.Swap(at) != at {
				s.Local()[at] ^= 0x10
			}
		}
		return k, err
	}
	return f
}

// CallFault damages what stacks of calls carry.
type CallFault struct {
	// before call n; nil: nothing
	Call  func(n int64, c *transports.Call)
	Serve func(n int64, s *transports.Served, answer func(*transports.Served) error) error // of request n; nil: answer
}

// Ends are those of e with this fault.
func (f *CallFault) Ends(e Ends) Ends {
	return func(t testing.TB) (transports.Stack, transports.Stack) {
		var bent [2]transports.Stack
		client, server := e(t)
		for i, s := range []transports.Stack{client, server} {
			calls, err := transports.Calls(s)
			if err != nil {
				t.Fatal(err)
			}
			bent[i] = faultCalls{calls, f}
		}
		return bent[0], bent[1]
	}
}

type faultCalls struct {
	transports.CallTransport
	f *CallFault
}

func (c faultCalls) ListenCalls(ctx context.Context, addr string, cfg transports.CallConfig,
	h transports.CallHandler) (transports.CallServer, error) {
	return c.CallTransport.ListenCalls(ctx, addr, cfg, &faultHandler{h: h, f: c.f})
}

type faultHandler struct {
	h transports.CallHandler
	f *CallFault
	n atomic.Int64
}

func (h *faultHandler) ServeCall(s *transports.Served) error {
	if h.f.Serve == nil {
		return h.h.ServeCall(s)
	}
	return h.f.Serve(h.n.Add(1), s, h.h.ServeCall)
}

func (c faultCalls) DialCalls(ctx context.Context, addr string, cfg transports.CallConfig) (transports.CallConn,
	error) {
	conn, err := c.CallTransport.DialCalls(ctx, addr, cfg)
	return faultConn{conn, c.f}, err
}

type faultConn struct {
	transports.CallConn
	f *CallFault
}

func (c faultConn) Caller(ctx context.Context, cfg transports.CallerConfig) (transports.Caller, error) {
	k, err := c.CallConn.Caller(ctx, cfg)
	return &faultCaller{Caller: k, f: c.f}, err
}

type faultCaller struct {
	transports.Caller
	f *CallFault
	n int64
}

func (k *faultCaller) Call(c *transports.Call) error {
	if k.n++; k.f.Call != nil {
		k.f.Call(k.n, c)
	}
	return k.Caller.Call(c)
}

// Flipped is b with the bits of mask changed in byte i, from the end where i is negative.
func Flipped(b []byte, i int, mask byte) []byte {
	b = append([]byte(nil), b...)
	if i < 0 {
		i += len(b)
	}
	b[i] ^= mask
	return b
}
