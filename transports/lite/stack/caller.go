package stack

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/session"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Ports of a server of calls: one for each mode and method, and these.
const (
	countPort  = 3*transports.CallMethods + iota // how many messages one way of a client arrived
	giveUpPort                                   // a caller's deadline passed
)

func portOf(m transports.CallMode, method uint8) int {
	return int(m)*transports.CallMethods + int(method)
}

const (
	maxPriorities  = 8              // that of the work requests of the waist
	textRoom       = 512            // bytes for the text of an error; more is cut
	noTimeout      = 24 * time.Hour // of calls without one
	controlTimeout = time.Second    // of messages beside the calls
)

// DialCalls joins the cluster of a server, where that has not happened.
func (s *Stack) DialCalls(ctx context.Context, addr string, cfg transports.CallConfig) (transports.CallConn, error) {
	fail := func(err error) (transports.CallConn, error) {
		return nil, &rdma.OpError{Op: "dial", Object: addr, Err: session.Reach(err)}
	}
	n, err := s.Join(ctx, addr, func() (session.Node, error) {
		return s.open(ctx, ":0", addr, callNeed(cfg), cfg.Secret)
	})
	if err != nil {
		return fail(err)
	}
	aside, err := n.Node.(node).Client(lite.ClientConfig{Wait: s.cfg.wait(), Timeout: controlTimeout})
	if err != nil {
		return fail(errors.Join(err, n.Done()))
	}
	c := &callConn{stack: s, node: n.Node.(node), done: n.Done, cfg: cfg, control: aside}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

type callConn struct {
	stack  *Stack
	node   node
	done   func() error // ends the use of node
	cfg    transports.CallConfig
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	mu      sync.Mutex
	control *lite.Client // under mu
}

func (c *callConn) Caller(ctx context.Context, cfg transports.CallerConfig) (transports.Caller, error) {
	if err := cfg.Check(callModes); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, rdma.ErrClosed
	}
	k := &caller{conn: c, cfg: cfg, ctx: ctx}
	if k.cfg.Timeout <= 0 {
		k.cfg.Timeout = noTimeout
	}
	if _, err := k.client(0); err != nil {
		return nil, err
	}
	k.stops[0] = context.AfterFunc(ctx, k.interrupt)
	k.stops[1] = context.AfterFunc(c.ctx, k.interrupt)
	if cfg.Mode == transports.CallOneWay {
		var err error
		if k.before, err = k.count(); err != nil {
			return nil, errors.Join(err, k.Close())
		}
	}
	return k, nil
}

func (c *callConn) Close() error {
	c.mu.Lock()
	if c.ctx.Err() != nil {
		c.mu.Unlock()
		return nil
	}
	c.cancel()
	c.mu.Unlock()
	c.control.Close()
	return c.done()
}

type caller struct {
	conn  *callConn
	cfg   transports.CallerConfig
	ctx   context.Context
	stops [2]func() bool

	mu      sync.Mutex // of clients, against interrupt
	ended   bool
	clients [maxPriorities]*lite.Client // by priority, made when needed
	parts   [1][]byte
	sent    int64
	before  int64 // one way: what the server counted of a client of this number before
	closed  bool
}

func (k *caller) client(priority uint8) (*lite.Client, error) {
	if c := k.clients[priority]; c != nil {
		return c, nil
	}
	c, err := k.conn.node.Client(lite.ClientConfig{Depth: 1, MaxReply: max(k.conn.cfg.MaxResponse, textRoom),
		Wait: k.conn.stack.cfg.wait(), Priority: priority, Timeout: k.cfg.Timeout})
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clients[priority] = c
	if k.ended {
		c.Interrupt()
	}
	return c, nil
}

func (k *caller) interrupt() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	for _, c := range k.clients {
		if c != nil {
			c.Interrupt()
		}
	}
}

func (k *caller) Call(q *transports.Call) error {
	method, err := k.cfg.MethodOf(q)
	if err != nil {
		return err
	}
	c, err := k.client(min(q.Priority, maxPriorities-1))
	if err != nil {
		return k.failed(err)
	}
	p, err := c.Start(0, portOf(k.cfg.Mode, method), q.Request)
	if err != nil {
		return k.failed(err)
	}
	b, err := c.Finish(p, len(q.Request) > longMessage)
	if err != nil {
		if err == lite.ErrTimeout {
			k.conn.giveUp(p.Number())
		}
		if code, ok := err.(lite.Code); ok && code > 0 {
			return &transports.CallError{Code: transports.CallCode(code - 1), Text: string(b)}
		}
		return k.failed(err)
	}
	k.sent++
	k.parts[0] = b
	q.Response = k.parts[:]
	return nil
}

// longMessage is the size from which adaptive waiting sleeps at once (lite_api.c).
const longMessage = 40960

func (k *caller) failed(err error) error {
	code := transports.CallInternal
	switch {
	case errors.Is(err, lite.ErrTimeout) && k.conn.ctx.Err() != nil:
		return &transports.CallError{Code: transports.CallCanceled, Text: "the connection was closed"}
	case errors.Is(err, lite.ErrTimeout) && k.ctx.Err() != nil:
		return transports.AsCallError(k.ctx.Err())
	case errors.Is(err, lite.ErrTimeout):
		return &transports.CallError{Code: transports.CallDeadlineExceeded, Text: "no answer in time"}
	case errors.Is(err, lite.ErrTooBig), errors.Is(err, lite.ErrPortFull), errors.Is(err, lite.ErrNoSpace):
		code = transports.CallResourceExhausted
	case errors.Is(err, lite.ErrPeerDead), errors.Is(err, lite.ErrNoMember), errors.Is(err, lite.ErrClosed),
		errors.Is(err, lite.ErrNoPort):
		code = transports.CallUnavailable
	}
	return &transports.CallError{Code: code, Text: err.Error()}
}

func (c *callConn) giveUp(number uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() == nil && c.node.Answers(0) {
		_ = c.control.SendTagged(0, giveUpPort, number, nil) // a server that left needs none
	}
}

func (k *caller) Send(q *transports.Call) error {
	if k.cfg.Mode != transports.CallOneWay {
		return transports.WrongMode(k.cfg.Mode)
	}
	c, err := k.client(min(q.Priority, maxPriorities-1))
	if err == nil {
		err = c.SendTagged(0, portOf(k.cfg.Mode, k.cfg.Method), uint32(k.clients[0].Number()), q.Request)
	}
	if err != nil {
		return k.failed(err)
	}
	k.sent++
	return nil
}

// End waits until the server has taken all messages one way, or for Timeout without progress.
func (k *caller) End() (int64, error) {
	if k.cfg.Mode != transports.CallOneWay || k.sent == 0 {
		return k.sent, nil
	}
	last, since := int64(-1), time.Now()
	for {
		n, err := k.count()
		if err != nil {
			return last, err
		}
		if n -= k.before; n >= k.sent {
			return n, nil
		}
		if n != last {
			last, since = n, time.Now()
		} else if time.Since(since) > min(k.cfg.Timeout, 2*time.Second) {
			return n, nil // the caller counts what is missing
		}
	}
}

// count is how many messages one way the server has taken of clients of this number.
func (k *caller) count() (int64, error) {
	c := k.clients[0]
	b, err := c.Call(0, countPort, binary.BigEndian.AppendUint64(nil, uint64(c.Number())))
	switch {
	case err != nil:
		return 0, k.failed(err)
	case len(b) != 8:
		return 0, &transports.CallError{Code: transports.CallInternal, Text: "a count of messages is no number"}
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

// Free does nothing: the answer lies in the client's memory until its next call.
func (k *caller) Free() {}

func (k *caller) Close() error {
	if k.closed {
		return nil
	}
	k.closed = true
	for _, stop := range k.stops {
		stop()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.clients {
		if c != nil {
			c.Close()
		}
	}
	return nil
}
