package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"

	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier/blob"
)

// rpcCaller is what the callers of all kinds have.
type rpcCaller struct {
	sh      *Shape
	client  *blob.Client
	index   int
	ctx     context.Context
	share   *rpcShare
	out, in *phrase
	n       int64
	request blob.Message
	answer  blob.Message
}

// rpcShare is what the callers of a point share: the phrases of the phase.
type rpcShare struct {
	mu      sync.Mutex
	gen     int
	out, in *phrase
}

func (s *rpcShare) phrases(sh *Shape, gen int) (out, in *phrase) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out == nil || s.gen != gen {
		s.gen, s.out, s.in = gen, newPhrase(sh.Seed, gen, toServer, sh.Size), newPhrase(sh.Seed, gen, toClient, sh.Response)
	}
	return s.out, s.in
}

func rpcCallers(sh *Shape) func(carrier.Conn, int) (caller, error) {
	share := new(rpcShare)
	return func(conn carrier.Conn, index int) (caller, error) {
		return newRPCCaller(rpcCaller{sh: sh, share: share, client: blob.NewClient(conn), index: index}), nil
	}
}

func newRPCCaller(c rpcCaller) caller {
	switch c.sh.Call {
	case CallStream:
		return &streamCaller{rpcCaller: c}
	case CallOneway:
		return &onewayCaller{streamCaller{rpcCaller: c}}
	}
	return &unaryCaller{c}
}

func (c *rpcCaller) begin(ctx context.Context, gen int) error {
	c.ctx = ctx
	c.out, c.in = c.share.phrases(c.sh, gen)
	return nil
}

func (c *rpcCaller) prepare(n int64) {
	c.n = n + int64(c.index) // neighbours send different messages
	c.request.Bytes = c.out.cut(c.n)
}

// check compares the answer.
func (c *rpcCaller) check(int64) (int64, error) {
	if c.sh.Verify {
		if err := differs(c.sh, sideClient, "response", c.index/c.sh.Depth, &c.answer, c.in.cut(c.n)); err != nil {
			return 0, err
		}
	}
	c.answer.Free()
	return int64(c.sh.Size + c.sh.Response), nil
}

// unaryCaller makes unary calls.
type unaryCaller struct{ rpcCaller }

func (c *unaryCaller) call() error { return c.client.Unary(c.ctx, &c.request, &c.answer) }
func (c *unaryCaller) end() error  { return nil }

// streamCaller exchanges messages on a stream that lasts a phase.
type streamCaller struct {
	rpcCaller
	s grpc.ClientStream
}

func (c *streamCaller) begin(ctx context.Context, gen int) (err error) {
	c.rpcCaller.begin(ctx, gen)
	c.s, err = c.client.Stream(ctx)
	return err
}

func (c *streamCaller) call() error {
	if err := c.s.SendMsg(&c.request); err != nil {
		return c.reason(err)
	}
	return c.s.RecvMsg(&c.answer)
}

// reason is why a stream ended: io.EOF only says that it did (grpc.ClientStream).
func (c *streamCaller) reason(err error) error {
	if err != io.EOF {
		return err
	}
	if err = c.s.RecvMsg(&c.answer); err == nil || err == io.EOF {
		err = errors.New("the server ended the stream")
	}
	return err
}

func (c *streamCaller) end() error {
	if err := c.s.CloseSend(); err != nil {
		return err
	}
	if err := c.s.RecvMsg(&c.answer); err != io.EOF {
		c.answer.Free()
		if err == nil {
			err = errors.New("an answer that nothing asked for")
		}
		return err
	}
	return nil
}

// onewayCaller sends, and learns at the end how many messages arrived.
type onewayCaller struct{ streamCaller }

func (c *onewayCaller) prepare(n int64) {
	c.streamCaller.prepare(n)
	c.n = n + 1 // sent
}

func (c *onewayCaller) begin(ctx context.Context, gen int) error {
	c.n = 0
	return c.streamCaller.begin(ctx, gen)
}

func (c *onewayCaller) call() error {
	if err := c.s.SendMsg(&c.request); err != nil {
		return c.reason(err)
	}
	return nil
}

func (c *onewayCaller) check(int64) (int64, error) { return int64(c.sh.Size), nil }

func (c *onewayCaller) end() error {
	if err := c.s.CloseSend(); err != nil {
		return err
	}
	if err := c.s.RecvMsg(&c.answer); err != nil {
		return err
	}
	defer c.answer.Free()
	if want := binary.LittleEndian.AppendUint64(nil, uint64(c.n)); c.answer.Len() != len(want) {
		return fmt.Errorf("a count of %d bytes", c.answer.Len())
	} else if err := differs(c.sh, sideClient, "count of messages", c.index/c.sh.Depth, &c.answer, want); err != nil {
		return err
	}
	return nil
}
