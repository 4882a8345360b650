package daemonstack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/daemon"
	"github.com/rdmaperf/rdmaperf/transports/lite/session"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Config chooses how daemons are started and reached.
type Config struct {
	Command []string // that starts a daemon with the device below; flags of "rdmaperf lite daemon" are added
	Cross   bool     // the crossing is not hidden
	Links   int      // queue pairs to a peer; 0: the daemon's default
}

// Stack carries sessions and calls by daemons. Its methods are safe for concurrent use.
type Stack struct {
	*session.Sessions
	dev  rdma.Device
	caps rdma.Caps
	cfg  Config
}

var (
	_ transports.Transport     = (*Stack)(nil)
	_ transports.CallTransport = (*Stack)(nil)
)

// New makes the stack, and owns dev from its success on. rdma.ErrNotSupported: dev is of one process, or carries no
// LITE.
func New(dev rdma.Device, cfg Config) (*Stack, error) {
	caps := dev.Caps()
	if caps.Label == rdma.LabelMem || caps.Clock != nil {
		return nil, fmt.Errorf("%s is of one process, and a daemon is another one: %w", dev.Name(),
			rdma.ErrNotSupported)
	}
	if err := caps.Missing(rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead), SGE: 2}); err != nil {
		return nil, err
	}
	if len(cfg.Command) == 0 {
		return nil, rdma.ErrInvalid
	}
	s := &Stack{dev: dev, caps: caps, cfg: cfg}
	s.Sessions = session.New(dev, s.Caps(), s.open)
	return s, nil
}

// Name is the tier over its device.
func (s *Stack) Name() string {
	p := []string{"daemon"}
	if s.cfg.Cross {
		p = append(p, "cross")
	}
	p = append(p, fmt.Sprintf("k=%d", s.Links()))
	if !s.caps.Ops.Has(rdma.OpWriteImm) {
		p = append(p, "sends")
	}
	return "lite(" + strings.Join(p, ",") + ")+" + s.dev.Name()
}

// Links is how many queue pairs a node has to a peer.
func (s *Stack) Links() int { return cmp.Or(s.cfg.Links, 4) }

const (
	maxMessage = 256 << 10
	maxCallers = 64
	callPort   = 1 // takes calls; their first byte has mode and method
	textRoom   = 512
)

var callModes = transports.CallModes(transports.CallUnary, transports.CallStream)

// Caps are those of sessions, and of calls.
func (s *Stack) Caps() transports.Caps {
	c := session.Caps(&s.caps)
	c.MaxSessions, c.MaxConns, c.MaxDepth = MaxSessions, MaxSessions, maxDepth
	c.CallModes = callModes
	c.MaxCall, c.MaxCalls = maxMessage, maxCallers
	return c
}

// CallCost is how calls are carried and waited for.
func (s *Stack) CallCost() transports.CallCost {
	mode := "shared page polled"
	if s.cfg.Cross {
		mode = "rung and slept for"
	}
	return transports.CallCost{Form: "by a daemon", Mode: mode, Pollers: 1}
}

func check(cfg transports.CallConfig) error {
	if cfg.MaxRequest < 0 || cfg.MaxRequest > maxMessage || cfg.MaxResponse < 0 || cfg.MaxResponse > maxMessage ||
		cfg.Callers > maxCallers {
		return fmt.Errorf("%d callers, requests of %d and responses of %d bytes, at most %d and %d: %w", cfg.Callers,
			cfg.MaxRequest, cfg.MaxResponse,
			maxCallers, maxMessage, rdma.ErrInvalid)
	}
	return nil
}

// conn is a client's connection: a daemon, and a client of it for each caller.
type conn struct {
	stack  *Stack
	cfg    transports.CallConfig
	p      *Process
	ctx    context.Context
	cancel context.CancelFunc
}

// DialCalls starts a daemon that joins the server's cluster.
func (s *Stack) DialCalls(ctx context.Context, addr string, cfg transports.CallConfig) (transports.CallConn, error) {
	fail := func(err error) (transports.CallConn, error) {
		return nil, &rdma.OpError{Op: "dial", Object: addr, Err: err}
	}
	if err := check(cfg); err != nil {
		return fail(err)
	}
	n := max(cfg.Callers, 1) + 1
	room := cfg.MaxRequest + max(cfg.MaxResponse, textRoom)
	p, err := s.Start(ctx, ":0", addr, Need{Clients: n, Place: 256<<10 + 2*room, Arena: 64<<20 + n*2*room,
		Secret: cfg.Secret})
	if err != nil {
		return fail(fmt.Errorf("%w: %w", rdma.ErrUnreachable, err))
	}
	c := &conn{stack: s, cfg: cfg, p: p}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

func (c *conn) Close() error {
	if c.ctx.Err() != nil {
		return nil
	}
	c.cancel()
	return c.p.Close()
}

func (c *conn) Caller(ctx context.Context, cfg transports.CallerConfig) (transports.Caller, error) {
	if err := cfg.Check(callModes); err != nil {
		return nil, err
	}
	if c.ctx.Err() != nil {
		return nil, rdma.ErrClosed
	}
	wait := cfg.Timeout
	if wait <= 0 {
		wait = 24 * time.Hour
	}
	d, err := c.p.Dial(ctx, daemon.ClientConfig{MaxReply: max(c.cfg.MaxResponse, textRoom), Timeout: wait})
	if err != nil {
		return nil, err
	}
	k := &caller{conn: c, cfg: cfg, ctx: ctx, client: d}
	if k.buf, err = d.Alloc(c.cfg.MaxRequest + 1); err == nil {
		err = d.Prepare(0, callPort)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	k.stops[0] = context.AfterFunc(ctx, d.Interrupt)
	k.stops[1] = context.AfterFunc(c.ctx, d.Interrupt)
	return k, nil
}

type caller struct {
	conn   *conn
	cfg    transports.CallerConfig
	ctx    context.Context
	client *daemon.Client
	stops  [2]func() bool
	buf    []byte // in the place
	parts  [1][]byte
	sent   int64
	closed bool
}

func callError(code transports.CallCode, text string) error {
	return &transports.CallError{Code: code, Text: text}
}

func (k *caller) Call(q *transports.Call) error {
	method, err := k.cfg.MethodOf(q)
	if err != nil {
		return err
	}
	if len(q.Request) >= len(k.buf) {
		return callError(transports.CallResourceExhausted, fmt.Sprintf("request of %d bytes, at most %d",
			len(q.Request), len(k.buf)-1))
	}
	k.buf[0] = uint8(k.cfg.Mode)<<4 | method
	copy(k.buf[1:], q.Request)
	b, err := k.client.Call(0, callPort, k.buf[:1+len(q.Request)])
	if err != nil {
		return k.failed(b, err)
	}
	k.sent++
	k.parts[0] = b
	q.Response = k.parts[:]
	return nil
}

func (k *caller) failed(b []byte, err error) error {
	code, ok := err.(lite.Code)
	switch {
	case ok && code > 0:
		return callError(transports.CallCode(code-1), string(b))
	case k.conn.ctx.Err() != nil:
		return callError(transports.CallCanceled, "the connection was closed")
	case err == lite.ErrTimeout && k.ctx.Err() != nil:
		return transports.AsCallError(k.ctx.Err())
	case err == lite.ErrTimeout:
		return callError(transports.CallDeadlineExceeded, "no answer in time")
	case err == lite.ErrTooBig || err == lite.ErrPortFull || err == lite.ErrNoSpace:
		return callError(transports.CallResourceExhausted, err.Error())
	}
	return callError(transports.CallUnavailable, err.Error())
}

func (k *caller) Send(*transports.Call) error {
	return callError(transports.CallInvalidArgument, "no messages one way")
}

// End has nothing to wait for: every message was answered.
func (k *caller) End() (int64, error) { return k.sent, nil }

// Free does nothing: the answer lies in the place until the next call.
func (k *caller) Free() {}

func (k *caller) Close() error {
	if k.closed {
		return nil
	}
	k.closed = true
	for _, stop := range k.stops {
		stop()
	}
	return k.client.Close()
}

// server answers calls: one goroutine takes them of the daemon, calls the handler and answers.
type server struct {
	p       *Process
	client  *daemon.Client
	handler transports.CallHandler
	most    int // bytes of a response
	ctx     context.Context
	cancel  context.CancelFunc
	done    chan struct{}
}

// ListenCalls starts a daemon that founds a cluster at addr.
func (s *Stack) ListenCalls(ctx context.Context, addr string, cfg transports.CallConfig,
	h transports.CallHandler) (transports.CallServer, error) {
	fail := func(err error) (transports.CallServer, error) {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	if err := check(cfg); err != nil {
		return fail(err)
	}
	receives := min(max(cfg.Callers, 1)*max(cfg.Conns, 1), maxCallers)
	place := 512<<10 + receives*(cfg.MaxRequest+64) + 2*max(cfg.MaxResponse, textRoom)
	p, err := s.Start(ctx, addr, "", Need{Clients: 1, Place: place,
		Arena: 64<<20 + 16*max(cfg.Conns, 1)*(cfg.MaxRequest+cfg.MaxResponse), Secret: cfg.Secret})
	if err != nil {
		return fail(err)
	}
	v := &server{p: p, handler: h, most: cfg.MaxResponse, done: make(chan struct{})}
	if v.client, err = p.Dial(ctx, daemon.ClientConfig{Timeout: 24 * time.Hour}); err != nil {
		return fail(errors.Join(err, p.Close()))
	}
	if err = v.client.Serve(callPort, cfg.MaxRequest+1, receives); err != nil {
		return fail(errors.Join(err, v.client.Close(), p.Close()))
	}
	v.ctx, v.cancel = context.WithCancel(context.Background())
	go v.work()
	return v, nil
}

func (v *server) Addr() string { return v.client.Addr() }

// Close ends all calls, and returns when the last handler has.
func (v *server) Close() error {
	if v.ctx.Err() != nil {
		return nil
	}
	v.cancel()
	v.client.Interrupt()
	<-v.done
	return errors.Join(v.client.Close(), v.p.Close())
}

func (v *server) work() {
	defer close(v.done)
	var q transports.Served
	parts := [1][]byte{}
	for v.ctx.Err() == nil {
		m, err := v.client.RecvWait()
		if err != nil {
			return // the end of this server, or of its daemon
		}
		if v.answer(&m, &q, &parts) != nil {
			return
		}
	}
}

// answer answers one call. An error is the end of the daemon.
func (v *server) answer(m *daemon.Message, q *transports.Served, parts *[1][]byte) error {
	if len(m.Payload) == 0 || m.OneWay {
		return m.Release()
	}
	parts[0] = m.Payload[1:]
	*q = transports.Served{Ctx: v.ctx, Mode: transports.CallMode(m.Payload[0] >> 4), Method: m.Payload[0] & 0xf,
		Request: parts[:]}
	err := v.handler.ServeCall(q)
	if err == nil && len(q.Response) > v.most {
		err = &transports.CallError{Code: transports.CallResourceExhausted,
			Text: "the response is longer than the caller takes"}
	}
	if err != nil {
		e := transports.AsCallError(err)
		err = m.Reply(lite.Code(e.Code)+1, []byte(e.Text[:min(len(e.Text), textRoom)]))
	} else {
		err = m.Reply(0, q.Response)
	}
	if q.Owner != nil {
		q.Owner.Release()
	}
	return err
}
