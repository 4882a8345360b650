package rpc

import (
	"context"
	"fmt"
	"sync"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/payload"
	"github.com/rdmaperf/rdmaperf/transports"
)

// rpcCaller makes calls of any kind. A stream, and messages one way, last a phase.
type rpcCaller struct {
	sh      *engine.Shape
	mode    transports.CallMode
	conn    transports.CallConn
	k       transports.Caller // of the phase
	index   int
	share   *rpcShare
	out, in *payload.Sequence
	n, sent int64
	c       transports.Call
}

// rpcShare is what the callers of a point share: the sequences of the phase.
type rpcShare struct {
	mu      sync.Mutex
	gen     int
	out, in *payload.Sequence
}

func (s *rpcShare) sequences(sh *engine.Shape, gen int) (out, in *payload.Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil || s.gen != gen {
		s.gen, s.out, s.in = gen, payload.NewSequence(sh.Seed, gen, payload.ToServer, sh.Size),
			payload.NewSequence(sh.Seed, gen, payload.ToClient, sh.Response)
	}
	return s.out, s.in
}

// Callers make the callers of a point.
func Callers(sh *engine.Shape) func(transports.CallConn, int) (engine.Caller, error) {
	share := new(rpcShare)
	mode, ok := transports.ParseCallMode(sh.Call)
	return func(conn transports.CallConn, index int) (engine.Caller, error) {
		if !ok {
			return nil, engine.Failed(sh.String(), fmt.Errorf("kind of call %q", sh.Call)) // it was checked before
		}
		return &rpcCaller{sh: sh, mode: mode, share: share, conn: conn, index: index}, nil
	}
}

func (c *rpcCaller) Begin(ctx context.Context, gen int) (err error) {
	c.out, c.in = c.share.sequences(c.sh, gen)
	c.sent = 0
	c.k, err = c.conn.Caller(ctx, transports.CallerConfig{Mode: c.mode})
	return err
}

func (c *rpcCaller) Prepare(n int64) {
	c.n = n + payload.Offset(c.index) // neighbours send different messages
	c.c.Request = c.out.Cut(c.n)
}

func (c *rpcCaller) Call() error {
	if c.mode != transports.CallOneWay {
		return c.k.Call(&c.c)
	}
	c.sent++
	return c.k.Send(&c.c)
}

// Check compares the answer.
func (c *rpcCaller) Check(int64) (int64, error) {
	if c.mode == transports.CallOneWay {
		return int64(c.sh.Size), nil
	}
	if c.sh.Verify {
		if err := payload.Differs(c.sh, engine.SideClient, "response", c.index/c.sh.Depth, c.c.Response,
			c.in.Cut(c.out.Of(c.n))); err != nil {
			return 0, err
		}
	}
	c.k.Free()
	return int64(c.sh.Size + c.sh.Response), nil
}

// End also learns how many messages one way arrived.
func (c *rpcCaller) End() error {
	n, err := c.k.End()
	if err != nil {
		return err
	}
	if c.mode == transports.CallOneWay && n != c.sent {
		return engine.Corrupted(fmt.Errorf("%s: connection %d: %d messages arrived, %d were sent (seen by the %s)",
			c.sh, c.index/c.sh.Depth, n, c.sent, engine.SideClient))
	}
	return c.k.Close()
}
