package outside

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
	"github.com/rdmaperf/rdmaperf/transports/lite/daemon"
	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// MaxSessions of one daemon: each has a place as large as its window, all of which a
	// device that pins pins at the start. Arbitrary.
	MaxSessions = 8
	// maxDepth of operations, and of receives: a daemon's rings have 512 places for both.
	maxDepth = 240
	// setUpPort is where a listener takes sessions; theirs follow.
	setUpPort = 0
	// helloMost is the contract's, and line the longest message of a set-up, bytes.
	helloMost, line = 16, 4096
	// blockTime bounds what a session asks its daemon for.
	blockTime = 20 * time.Second
)

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
	cfg.SendDepth, cfg.RecvDepth = max(cfg.SendDepth, 1), max(cfg.RecvDepth, 1)
	for _, l := range []struct {
		what     string
		got      int
		from, to int
	}{
		{"window", cfg.Window, 1, 1 << 32},
		{"send depth", cfg.SendDepth, 1, maxDepth},
		{"receive depth", cfg.RecvDepth, 1, maxDepth},
		{"inline bytes", cfg.MaxInline, 0, 0},
		{"read depth", cfg.ReadDepth, 0, s.caps.MaxRDAtom},
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
		return nil, &rdma.OpError{Op: "dial", Object: addr, Err: reach(err)}
	}
	return x, nil
}

func (s *Stack) dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (*session, error) {
	cfg, err := s.normal(cfg)
	if err != nil {
		return nil, err
	}
	if len(hello) > helloMost {
		return nil, fmt.Errorf("hello of %d bytes, at most %d: %w", len(hello), helloMost, rdma.ErrInvalid)
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
	var a answer
	if err = x.setUp(ctx, &ask{Hello: hello, Name: x.name, Window: uint64(cfg.Window)}, &a); err == nil {
		err = x.meet(a.Port, a.Name, a.Window)
	}
	if err != nil {
		return nil, errors.Join(err, x.abandon())
	}
	return x, nil
}

// setUp asks the listener, whose answer comes when it accepts.
func (x *session) setUp(ctx context.Context, q *ask, a *answer) error {
	b, err := json.Marshal(q)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, x.client.Interrupt)
	got, err := x.client.Call(0, setUpPort, b)
	if !stop() && err == nil {
		err = ctx.Err() // the client ends all it waits for from now on
	}
	if err != nil {
		if e := ctx.Err(); e != nil {
			err = e
		}
		return err
	}
	if json.Unmarshal(got, a) != nil || a.Port < 0 || a.Port > MaxSessions {
		return fmt.Errorf("%w: answer to a session's set-up", rdma.ErrProtocol)
	}
	if a.Refuse != "" {
		return fmt.Errorf("the listener refuses: %s: %w", a.Refuse, rdma.ErrUnreachable)
	}
	return nil
}

// reach is err of set-up as the waist names it: a peer that is not there, or left.
func reach(err error) error {
	if errors.Is(err, lite.ErrPeerDead) || errors.Is(err, lite.ErrNoPort) || errors.Is(err, lite.ErrNoMember) || errors.Is(err, lite.ErrDeadHandle) {
		return fmt.Errorf("%w: %w", rdma.ErrUnreachable, err)
	}
	return err
}

type listener struct {
	stack *Stack
	cfg   transports.Config
	node  *shared

	mu     sync.Mutex
	client *daemon.Client // its goroutine is who accepts
	closed bool
	ports  uint64 // of sessions, in use
}

// Listen starts a daemon that founds a cluster, whose manager takes sessions at addr.
func (s *Stack) Listen(ctx context.Context, addr string, cfg transports.Config) (transports.Listener, error) {
	fail := func(err error) (transports.Listener, error) {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	cfg, err := s.normal(cfg)
	if err != nil {
		return fail(err)
	}
	p, err := s.Start(ctx, addr, "", need(cfg))
	if err != nil {
		return fail(err)
	}
	l := &listener{stack: s, cfg: cfg, node: &shared{Process: p, stack: s, users: 1}, ports: 1 << setUpPort}
	if l.client, err = p.Dial(ctx, daemon.ClientConfig{Timeout: blockTime}); err != nil {
		return fail(errors.Join(err, l.node.done()))
	}
	if err = l.client.Serve(setUpPort, line, MaxSessions); err != nil {
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
	var q ask
	if m.OneWay || json.Unmarshal(m.Payload, &q) != nil || len(q.Hello) > helloMost {
		return nil, nil, errors.Join(errTheirs, m.Release())
	}
	refuse := func(err error) error {
		b, _ := json.Marshal(answer{Refuse: err.Error()}) // it has nothing that fails
		_ = m.Reply(0, b)                                 // who is gone needs none
		return err
	}
	from := m.From
	l.node.use()
	if x, err = l.stack.newSession(ctx, l.node, l.cfg, from); err != nil {
		return nil, nil, refuse(err)
	}
	port := bits.TrailingZeros64(^l.ports)
	if port > MaxSessions {
		err = fmt.Errorf("%d sessions: %w", MaxSessions, rdma.ErrQueueFull)
	} else {
		l.ports |= 1 << port
		x.release = func() {
			l.mu.Lock()
			l.ports &^= 1 << port
			l.mu.Unlock()
		}
		err = x.meet(port, q.Name, q.Window)
	}
	if err != nil {
		l.mu.Unlock() // release takes it
		err = errors.Join(errTheirs, refuse(err), x.abandon())
		l.mu.Lock()
		return nil, nil, err
	}
	b, err := json.Marshal(answer{Port: port, Name: x.name, Window: uint64(len(x.win))})
	if err == nil {
		err = m.Reply(0, b)
	}
	if err != nil {
		l.mu.Unlock()
		err = errors.Join(errTheirs, err, x.abandon())
		l.mu.Lock()
		return nil, nil, err
	}
	return x, q.Hello, nil
}
