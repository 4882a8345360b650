package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// setUpPort is where a listener takes sessions; theirs follow.
const setUpPort = 0

// maxHello is the contract's, bytes.
const maxHello = 16

// ask is what a dialler says, and answer what it hears.
type ask struct {
	Hello  []byte
	Name   string // of the dialler's window
	Window uint64
}

type answer struct {
	Port   int
	Name   string
	Window uint64
	Refuse string
}

func (s *Stack) normal(cfg transports.Config) (transports.Config, error) {
	c := s.Caps()
	cfg.SendDepth, cfg.RecvDepth = max(cfg.SendDepth, 1), max(cfg.RecvDepth, 1)
	for _, l := range []struct {
		what     string
		got      int
		from, to int
	}{
		{"window", cfg.Window, 1, 1 << 32},
		{"send depth", cfg.SendDepth, 1, c.MaxDepth},
		{"receive depth", cfg.RecvDepth, 1, c.MaxDepth},
		{"inline bytes", cfg.MaxInline, 0, 0},
		{"read depth", cfg.ReadDepth, 0, c.MaxReadDepth},
	} {
		if l.got < l.from || l.got > l.to {
			return cfg, fmt.Errorf("%s %d, want %d to %d: %w", l.what, l.got, l.from, l.to, rdma.ErrInvalid)
		}
	}
	if cfg.Events {
		return cfg, &rdma.MissingError{Gaps: []string{"event mode of sessions"}}
	}
	return cfg, nil
}

// Dial joins the cluster at addr, where that has not happened, and sets up a session.
func (s *Stack) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session, error) {
	x, err := s.dial(ctx, addr, hello, cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "dial", Object: addr, Err: reach(err)}
	}
	return x, nil
}

func (s *Stack) dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (*session, error) {
	cfg, err := s.normal(cfg)
	if err != nil {
		return nil, err
	}
	if len(hello) > maxHello {
		return nil, fmt.Errorf("hello of %d bytes, at most %d: %w", len(hello), maxHello, rdma.ErrInvalid)
	}
	if cfg.Created != nil {
		cfg.Created()
	}
	n, err := s.join(ctx, addr, sessionNeed(cfg), cfg.Secret)
	if err != nil {
		return nil, err
	}
	x, err := s.newSession(n, cfg, 0)
	if err != nil {
		return nil, err
	}
	var a answer
	if err = x.setUp(ctx, &ask{Hello: hello, Name: x.name, Window: uint64(cfg.Window)}, &a); err == nil {
		err = x.listen(a.Port)
	}
	if err == nil {
		err = x.meet(a.Name, a.Window)
	}
	if err != nil {
		x.abandon()
		return nil, err
	}
	return x, nil
}

// setUp asks the listener, whose answer comes when it accepts.
func (x *session) setUp(ctx context.Context, q *ask, a *answer) error {
	b, err := json.Marshal(q)
	if err != nil {
		return err
	}
	c, err := x.node.Client(lite.ClientConfig{Wait: lite.WaitAdaptive, MaxReply: 4096, Timeout: timeLeft(ctx)})
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, c.Interrupt)
	defer stop()
	got, err := c.Call(0, setUpPort, b)
	if err != nil {
		if e := ctx.Err(); e != nil && errors.Is(err, lite.ErrTimeout) {
			err = e
		}
		return err
	}
	if err := json.Unmarshal(got, a); err != nil {
		return fmt.Errorf("%w: answer to a session's set-up", rdma.ErrProtocol)
	}
	if a.Refuse != "" {
		return fmt.Errorf("the listener refuses: %s: %w", a.Refuse, rdma.ErrUnreachable)
	}
	return nil
}

// timeLeft is until ctx ends; the default of the waist without a deadline.
func timeLeft(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 10 * time.Second
	}
	return max(time.Until(end), time.Millisecond)
}

type listener struct {
	stack *Stack
	cfg   transports.Config
	node  *shared
	port  *lite.Port

	mu     sync.Mutex
	closed bool
	ports  uint64 // of sessions, in use
}

// Listen makes a cluster whose manager takes sessions at addr.
func (s *Stack) Listen(ctx context.Context, addr string, cfg transports.Config) (transports.Listener, error) {
	fail := func(err error) (transports.Listener, error) {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	cfg, err := s.normal(cfg)
	if err != nil {
		return fail(err)
	}
	n, err := s.found(ctx, addr, sessionNeed(cfg), cfg.Secret)
	if err != nil {
		return fail(err)
	}
	p, err := n.Serve(setUpPort, lite.PortConfig{MaxRequest: 4096})
	if err != nil {
		return fail(errors.Join(err, n.done()))
	}
	return &listener{stack: s, cfg: cfg, node: n, port: p, ports: 1 << setUpPort}, nil
}

func (l *listener) Addr() string { return l.node.Addr() }

// Close takes no more sessions; those that are open stay.
func (l *listener) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	l.mu.Unlock()
	l.port.Close()
	return l.node.done()
}

// acceptLook is how long Accept sleeps between two looks at its context.
const acceptLook = 20 * time.Millisecond

// Accept answers the next dialler.
func (l *listener) Accept(ctx context.Context) (transports.Session, []byte, error) {
	fail := func(err error) (transports.Session, []byte, error) {
		return nil, nil, &rdma.OpError{Op: "accept", Object: l.Addr(), Err: err}
	}
	for {
		r, err := l.port.Recv(acceptLook, lite.WaitSleep)
		switch {
		case err == nil:
			x, hello, err := l.answer(&r)
			if err == nil {
				return x, hello, nil
			}
			if !errors.Is(err, errTheirs) {
				return fail(err)
			}
		case errors.Is(err, lite.ErrClosed):
			return fail(rdma.ErrClosed)
		case !errors.Is(err, lite.ErrTimeout):
			return fail(err)
		}
		if err := ctx.Err(); err != nil {
			return fail(err)
		}
	}
}

// errTheirs: the dialler is gone, or asks for nonsense.
var errTheirs = errors.New("the dialler's")

func (l *listener) answer(r *lite.Request) (x *session, hello []byte, err error) {
	var q ask
	if json.Unmarshal(r.Payload, &q) != nil || len(q.Hello) > maxHello {
		return nil, nil, errors.Join(errTheirs, r.ReplyError(lite.ErrFail))
	}
	refuse := func(err error) error {
		b, _ := json.Marshal(answer{Refuse: err.Error()}) // it has nothing that fails
		_ = r.Reply(b)
		return err
	}
	l.node.use()
	if x, err = l.stack.newSession(l.node, l.cfg, r.From); err != nil {
		return nil, nil, refuse(err)
	}
	port, err := l.takePort()
	if err == nil {
		x.release = func() { l.givePort(port) }
		err = x.listen(port)
	}
	if err == nil {
		err = x.meet(q.Name, q.Window)
	}
	if err != nil {
		x.abandon()
		return nil, nil, refuse(errors.Join(errTheirs, err))
	}
	b, err := json.Marshal(answer{Port: port, Name: x.name, Window: uint64(len(x.win))})
	if err == nil {
		err = r.Reply(b)
	}
	if err != nil {
		x.abandon()
		return nil, nil, errors.Join(errTheirs, err)
	}
	return x, q.Hello, nil
}

func (l *listener) takePort() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := bits.TrailingZeros64(^l.ports)
	if p > MaxSessions {
		return 0, fmt.Errorf("%d sessions: %w", MaxSessions, rdma.ErrQueueFull)
	}
	l.ports |= 1 << p
	return p, nil
}

func (l *listener) givePort(p int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ports &^= 1 << p
}
