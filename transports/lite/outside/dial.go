package outside

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/daemon"
	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/lite/setup"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// MaxSessions of one daemon: each has a place as large as its window, all of which a
	// device that pins pins at the start. Arbitrary.
	MaxSessions = 8
	// maxDepth of operations, and of receives: a daemon's rings have 512 places for both.
	maxDepth = 240
	// blockTime bounds what a session asks its daemon for.
	blockTime = 20 * time.Second
)

// longest is the longest message of a session with such windows.
func longest(window int) int { return min(window, int(ring.MaxRecord(ring.MaxSize))-wire.RequestLen) }

// need is what a daemon must have room for with such sessions.
func need(cfg transports.Config) Need {
	size := uint64(ring.MaxSize)
	if n, err := ring.SizeFor(uint64(longest(cfg.Window) + wire.RequestLen)); err == nil {
		size = n
	}
	return Need{Clients: MaxSessions + 1, Place: cfg.Window + 256<<10, Arena: 64<<20 + MaxSessions*int(size), Secret: cfg.Secret}
}

// shared is a daemon with those who use it.
type shared struct {
	*Process
	stack *Stack
	addr  string // of the cluster, for those who joined
	made  chan struct{}
	err   error
	users int // under stack.mu
}

// join is the daemon of the cluster at addr, which is started for the first who asks.
func (s *Stack) join(ctx context.Context, addr string, n Need) (*shared, error) {
	s.mu.Lock()
	d := s.nodes[addr]
	first := d == nil
	if first {
		d = &shared{stack: s, addr: addr, made: make(chan struct{})}
		s.nodes[addr] = d
	}
	d.users++
	s.mu.Unlock()
	if first {
		d.Process, d.err = s.Start(ctx, ":0", addr, n)
		close(d.made)
	}
	err := error(nil)
	select {
	case <-d.made:
		err = d.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", rdma.ErrUnreachable, err), d.done())
	}
	return d, nil
}

// use counts one more user.
func (d *shared) use() {
	d.stack.mu.Lock()
	d.users++
	d.stack.mu.Unlock()
}

// done ends one use; the last one ends the daemon.
func (d *shared) done() error {
	s := d.stack
	s.mu.Lock()
	d.users--
	last := d.users == 0
	if last && s.nodes[d.addr] == d {
		delete(s.nodes, d.addr)
	}
	s.mu.Unlock()
	if !last || d.Process == nil {
		return nil
	}
	return d.Process.Close()
}

// number is new in this process, for names of regions.
func (s *Stack) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	return s.serial
}

// Dial joins the cluster at addr by a daemon, where that has not happened, and sets up a
// session.
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
	d, err := s.join(ctx, addr, need(cfg))
	if err != nil {
		return nil, err
	}
	x, err := s.newSession(ctx, d, cfg, 0)
	if err != nil {
		return nil, err
	}
	a, err := x.setUp(ctx, setup.Ask{Hello: hello, Name: x.name, Window: uint64(cfg.Window)})
	if err == nil {
		err = x.meet(a.Port, a.Name, a.Window)
	}
	if err != nil {
		return nil, errors.Join(err, x.abandon())
	}
	return x, nil
}

// setUp asks the listener, whose answer comes when it accepts.
func (x *session) setUp(ctx context.Context, q setup.Ask) (a setup.Answer, err error) {
	stop := context.AfterFunc(ctx, x.client.Interrupt)
	got, err := x.client.Call(0, setup.Port, q.Encode())
	if !stop() && err == nil {
		err = ctx.Err() // the client ends all it waits for from now on
	}
	if err != nil {
		if e := ctx.Err(); e != nil {
			err = e
		}
		return a, err
	}
	return setup.ParseAnswer(got, MaxSessions)
}

type listener struct {
	stack *Stack
	cfg   transports.Config
	node  *shared
	ports *setup.Ports // of sessions

	mu     sync.Mutex
	client *daemon.Client // its goroutine is who accepts
	closed bool
}

// Listen starts a daemon that founds a cluster, whose manager takes sessions at addr.
func (s *Stack) Listen(ctx context.Context, addr string, cfg transports.Config) (transports.Listener, error) {
	fail := func(err error) (transports.Listener, error) {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	cfg, err := setup.Normal(cfg, s.Caps())
	if err != nil {
		return fail(err)
	}
	p, err := s.Start(ctx, addr, "", need(cfg))
	if err != nil {
		return fail(err)
	}
	l := &listener{stack: s, cfg: cfg, node: &shared{Process: p, stack: s, users: 1}, ports: setup.NewPorts(MaxSessions)}
	if l.client, err = p.Dial(ctx, daemon.ClientConfig{Timeout: blockTime}); err != nil {
		return fail(errors.Join(err, l.node.done()))
	}
	if err = l.client.Serve(setup.Port, setup.MaxLine, MaxSessions); err != nil {
		return fail(errors.Join(err, l.client.Close(), l.node.done()))
	}
	return l, nil
}

func (l *listener) Addr() string { return l.client.Addr() }

// Close takes no more sessions; those that are open stay. Idempotent.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return errors.Join(l.client.Close(), l.node.done())
}

// acceptLook is how long Accept sleeps between two looks. Arbitrary: a set-up takes longer.
const acceptLook = time.Millisecond

// Accept answers the next dialler.
func (l *listener) Accept(ctx context.Context) (transports.Session, []byte, error) {
	for {
		x, hello, err := l.next(ctx)
		switch {
		case err == nil && x != nil:
			return x, hello, nil
		case err == nil:
			err = ctx.Err()
		case errors.Is(err, errTheirs):
			continue
		}
		if err != nil {
			return nil, nil, &rdma.OpError{Op: "accept", Object: l.Addr(), Err: err}
		}
		select {
		case <-ctx.Done():
		case <-time.After(acceptLook):
		}
	}
}

// errTheirs: the dialler is gone, or asks for nonsense.
var errTheirs = errors.New("the dialler's")

// next answers a dialler, if there is one.
func (l *listener) next(ctx context.Context) (x *session, hello []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, nil, rdma.ErrClosed
	}
	m, err := l.client.Recv()
	if err == lite.ErrEmpty {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	q, err := setup.ParseAsk(m.Payload)
	if err != nil || m.OneWay {
		return nil, nil, errors.Join(errTheirs, err, m.Release())
	}
	refuse := func(err error) error {
		_ = m.Reply(0, setup.Answer{Refuse: err.Error()}.Encode()) // who is gone needs none
		return err
	}
	l.node.use()
	if x, err = l.stack.newSession(ctx, l.node, l.cfg, m.From); err != nil {
		return nil, nil, refuse(err)
	}
	port, err := l.ports.Take()
	if err == nil {
		x.release = func() { l.ports.Give(port) }
		err = x.meet(port, q.Name, q.Window)
	}
	if err != nil {
		return nil, nil, errors.Join(errTheirs, refuse(err), x.abandon())
	}
	if err := m.Reply(0, setup.Answer{Port: port, Name: x.name, Window: uint64(len(x.win))}.Encode()); err != nil {
		return nil, nil, errors.Join(errTheirs, err, x.abandon())
	}
	return x, q.Hello, nil
}
