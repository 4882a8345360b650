package rpc

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/payload"
	"github.com/rdmaperf/rdmaperf/transports"
)

// Messages are what the calls of a point carry: cut from two sequences of each phase, one each way.
type Messages struct {
	Sh      *engine.Shape
	Mode    transports.CallMode
	Request int  // bytes; an answer has as many as the point says
	note    bool // answers are no payload

	// Compare compares the n-th message of the phase that a side received with the one that was sent; nil: all of it.
	Compare func(sh *engine.Shape, n int64, side string, lane int, got transports.Parts, want []byte) error
}

// BytesOf are requests and answers of the point's sizes.
func BytesOf(sh *engine.Shape) *Messages {
	mode, _ := transports.ParseCallMode(sh.Call) // check knows it
	return &Messages{Sh: sh, Mode: mode, Request: sh.Size}
}

func (m *Messages) compare(n int64, side, what string, lane int, got transports.Parts, want []byte) error {
	switch {
	case !m.Sh.Verify:
		return nil
	case m.Compare != nil:
		return m.Compare(m.Sh, n, side, lane, got, want)
	}
	return payload.Differs(m.Sh, side, what, lane, got, want)
}

type phase struct {
	requests, answers *payload.Sequence
	ops               atomic.Int64 // that were served
}

func (m *Messages) phase(gen int) *phase {
	return &phase{requests: payload.NewSequence(m.Sh.Seed, gen, payload.ToServer, m.Request),
		answers: payload.NewSequence(m.Sh.Seed, gen, payload.ToClient, m.Sh.Response)}
}

// caller makes calls of any kind. A stream, and messages one way, last a phase.
type caller struct {
	*Messages
	conn         transports.CallConn
	k            transports.Caller // of the phase
	index        int
	share        *PerPhase[phase]
	p            *phase
	n, cut, sent int64
	c            transports.Call
}

// PerPhase is what all callers of a point have of a phase, which the first makes.
type PerPhase[T any] struct {
	mu  sync.Mutex
	gen int
	now *T
}

// Of is that of phase gen.
func (p *PerPhase[T]) Of(gen int, newOf func(gen int) *T) *T {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now == nil || p.gen != gen {
		p.gen, p.now = gen, newOf(gen)
	}
	return p.now
}

// Callers make the callers of a point.
func (m *Messages) Callers() func(transports.CallConn, int) (engine.Caller, error) {
	s := new(PerPhase[phase])
	return func(conn transports.CallConn, index int) (engine.Caller, error) {
		return &caller{Messages: m, share: s, conn: conn, index: index}, nil
	}
}

func (c *caller) Begin(ctx context.Context, gen int) (err error) {
	c.p, c.sent = c.share.Of(gen, c.Messages.phase), 0
	c.k, err = c.conn.Caller(ctx, transports.CallerConfig{Mode: c.Mode})
	return err
}

func (c *caller) Prepare(n int64) {
	c.n, c.cut = n, n+payload.Offset(c.index) // neighbours send different messages
	c.c.Request = c.p.requests.Cut(c.cut)
}

func (c *caller) Call() error {
	if c.Mode != transports.CallOneWay {
		return c.k.Call(&c.c)
	}
	c.sent++
	return c.k.Send(&c.c)
}

func (c *caller) Check(int64) (int64, error) {
	if c.Mode == transports.CallOneWay {
		return int64(c.Request), nil
	}
	if err := c.compare(c.n, engine.SideClient, "response", c.index/c.Sh.Depth, c.c.Response,
		c.p.answers.Cut(c.p.requests.Of(c.cut))); err != nil {
		return 0, err
	}
	c.k.Free()
	if c.note {
		return int64(c.Request), nil
	}
	return int64(c.Request + c.Sh.Response), nil
}

func (c *caller) End() error {
	n, err := c.k.End()
	if err != nil {
		return err
	}
	if c.Mode == transports.CallOneWay && n != c.sent {
		return engine.Corrupted(fmt.Errorf("%s: connection %d: %d messages arrived, %d were sent (seen by the %s)",
			c.Sh, c.index/c.Sh.Depth, n, c.sent, engine.SideClient))
	}
	return c.k.Close()
}

type service struct {
	*Messages
	fail func(error)
	now  atomic.Pointer[phase]
}

// Service answers the calls of a point; fail ends it.
func (m *Messages) Service(fail func(error)) engine.CallService {
	s := &service{Messages: m, fail: fail}
	s.now.Store(m.phase(engine.GenWarmup))
	return s
}

// Serve is the server's side of a point whose connections may be cfg.
func (m *Messages) Serve(ctx context.Context, s *engine.Serve, cfg transports.CallConfig) error {
	if err := s.HoldShape(m.Sh, 0); err != nil {
		return err
	}
	fails := drive.NewFailure()
	return drive.ServeCalls(ctx, s, m.Sh, cfg, m.Service(fails.Fail), fails)
}

func (s *service) Begin(gen int) error {
	if gen == engine.GenIdle || gen == engine.GenMemory { // nothing is called
		s.now.Load().ops.Store(0)
	} else {
		s.now.Store(s.phase(gen))
	}
	return nil
}

func (s *service) End() (int64, error) { return s.now.Load().ops.Load(), nil }
func (s *service) Close() error        { return nil }

func (s *service) ServeCall(r *transports.Served) error {
	p := s.now.Load()
	n := p.requests.Number(r.Request)
	if err := s.compare(p.ops.Add(1)-1, engine.SideServer, "request", 0, r.Request, p.requests.Cut(n)); err != nil {
		s.fail(err)
		return payload.Lost(err)
	}
	r.Response = p.answers.Cut(n)
	return nil
}
