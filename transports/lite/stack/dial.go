package stack

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/setup"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Dial joins the cluster at addr, where that has not happened, and sets up a session.
func (s *Stack) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session, error) {
	x, err := s.dial(ctx, addr, hello, cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "dial", Object: addr, Err: setup.Reach(err)}
	}
	return x, nil
}

func (s *Stack) dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (*session, error) {
	cfg, err := setup.Normal(cfg, s.Caps())
	if err != nil {
		return nil, err
	}
	if err := setup.CheckHello(hello); err != nil {
		return nil, err
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
	a, err := x.setUp(ctx, setup.Ask{Hello: hello, Name: x.name, Window: uint64(cfg.Window)})
	if err == nil {
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
func (x *session) setUp(ctx context.Context, q setup.Ask) (a setup.Answer, err error) {
	c, err := x.node.Client(lite.ClientConfig{Wait: lite.WaitAdaptive, MaxReply: setup.MaxLine, Timeout: timeLeft(ctx)})
	if err != nil {
		return a, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, c.Interrupt)
	defer stop()
	got, err := c.Call(0, setup.Port, q.Encode())
	if err != nil {
		if e := ctx.Err(); e != nil && errors.Is(err, lite.ErrTimeout) {
			err = e
		}
		return a, err
	}
	return setup.ParseAnswer(got, MaxSessions)
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
	ports *setup.Ports // of sessions

	mu     sync.Mutex
	closed bool
}

// Listen makes a cluster whose manager takes sessions at addr.
func (s *Stack) Listen(ctx context.Context, addr string, cfg transports.Config) (transports.Listener, error) {
	fail := func(err error) (transports.Listener, error) {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	cfg, err := setup.Normal(cfg, s.Caps())
	if err != nil {
		return fail(err)
	}
	n, err := s.found(ctx, addr, sessionNeed(cfg), cfg.Secret)
	if err != nil {
		return fail(err)
	}
	p, err := n.Serve(setup.Port, lite.PortConfig{MaxRequest: setup.MaxLine})
	if err != nil {
		return fail(errors.Join(err, n.done()))
	}
	return &listener{stack: s, cfg: cfg, node: n, port: p, ports: setup.NewPorts(MaxSessions)}, nil
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
	q, err := setup.ParseAsk(r.Payload)
	if err != nil {
		return nil, nil, errors.Join(errTheirs, err, r.ReplyError(lite.ErrFail))
	}
	refuse := func(err error) error {
		_ = r.Reply(setup.Answer{Refuse: err.Error()}.Encode()) // who is gone needs none
		return err
	}
	l.node.use()
	if x, err = l.stack.newSession(l.node, l.cfg, r.From); err != nil {
		return nil, nil, refuse(err)
	}
	port, err := l.ports.Take()
	if err == nil {
		x.release = func() { l.ports.Give(port) }
		err = x.listen(port)
	}
	if err == nil {
		err = x.meet(q.Name, q.Window)
	}
	if err != nil {
		x.abandon()
		return nil, nil, refuse(errors.Join(errTheirs, err))
	}
	if err := r.Reply(setup.Answer{Port: port, Name: x.name, Window: uint64(len(x.win))}.Encode()); err != nil {
		x.abandon()
		return nil, nil, errors.Join(errTheirs, err)
	}
	return x, q.Hello, nil
}
