package session

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Sessions make sessions. They have the methods of transports.Transport but for Name and Caps.
type Sessions struct {
	Nodes
	dev   rdma.Device
	caps  transports.Caps
	fence bool
	open  Opener
}

// Opener opens a node at listen with room for sessions of cfg, in the cluster of manager or, if empty, its own.
type Opener func(ctx context.Context, listen, manager string, cfg transports.Config) (Node, error)

// New makes sessions with caps over a device, and owns it.
func New(dev rdma.Device, caps transports.Caps, open Opener) *Sessions {
	return &Sessions{dev: dev, caps: caps, fence: dev.Caps().Features.Has(rdma.FeatFence), open: open}
}

// Device is the device below.
func (s *Sessions) Device() rdma.Device { return s.dev }

// Close closes the device; rdma.ErrBusy while something is open.
func (s *Sessions) Close() error { return s.dev.Close() }

// Dial joins the cluster at addr, where that has not happened, and sets up a session.
func (s *Sessions) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session,
	error) {
	x, err := s.dial(ctx, addr, hello, cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "dial", Object: addr, Err: Reach(err)}
	}
	return x, nil
}

func (s *Sessions) dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (*session, error) {
	cfg, err := normal(cfg, s.caps)
	if err != nil {
		return nil, err
	}
	if len(hello) > maxHello {
		return nil, fmt.Errorf("hello of %d bytes, at most %d: %w", len(hello), maxHello, rdma.ErrInvalid)
	}
	if cfg.Created != nil {
		cfg.Created()
	}
	n, err := s.Join(ctx, addr, func() (Node, error) { return s.open(ctx, ":0", addr, cfg) })
	if err != nil {
		return nil, err
	}
	x, err := s.newSession(ctx, n, cfg, 0)
	if err != nil {
		return nil, err
	}
	q := question{Hello: hello, Name: x.name, Window: uint64(cfg.Window)}
	b, err := x.user.Ask(ctx, encode(q))
	if err == nil {
		var a answer
		if a, err = parseAnswer(b, s.caps.MaxSessions); err == nil {
			err = x.meet(a.Port, a.Name, a.Window)
		}
	}
	if err != nil {
		return nil, errors.Join(err, x.abandon())
	}
	return x, nil
}

type listener struct {
	sessions  *Sessions
	cfg       transports.Config
	node      *Shared
	questions Questions
	ports     *ports
	close     func() error
}

// Listen founds a cluster whose manager takes sessions at addr.
func (s *Sessions) Listen(ctx context.Context, addr string, cfg transports.Config) (transports.Listener, error) {
	l, err := s.listen(ctx, addr, cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "listen", Object: addr, Err: err}
	}
	return l, nil
}

func (s *Sessions) listen(ctx context.Context, addr string, cfg transports.Config) (*listener, error) {
	cfg, err := normal(cfg, s.caps)
	if err != nil {
		return nil, err
	}
	node, err := s.open(ctx, addr, "", cfg)
	if err != nil {
		return nil, err
	}
	l := &listener{sessions: s, cfg: cfg, node: s.Found(node), ports: newPorts(s.caps.MaxSessions)}
	if l.questions, err = node.Questions(ctx); err != nil {
		return nil, errors.Join(err, l.node.Done())
	}
	l.close = sync.OnceValue(func() error { return errors.Join(l.questions.Close(), l.node.Done()) })
	return l, nil
}

func (l *listener) Addr() string { return l.questions.Addr() }

// Close takes no more sessions; those that are open stay. Idempotent.
func (l *listener) Close() error { return l.close() }

func (l *listener) Accept(ctx context.Context) (transports.Session, []byte, error) {
	for {
		q, err := l.questions.Next(ctx)
		if err == nil {
			var x *session
			var hello []byte
			if x, hello, err = l.answer(ctx, q); err == nil {
				return x, hello, nil
			}
			if errors.Is(err, errDialler) {
				continue
			}
		}
		return nil, nil, &rdma.OpError{Op: "accept", Object: l.Addr(), Err: err}
	}
}

// errDialler marks errors that the dialler caused.
var errDialler = errors.New("the dialler left or asked in vain")

func (l *listener) answer(ctx context.Context, ask *Question) (x *session, hello []byte, err error) {
	q, err := parseQuestion(ask.Bytes)
	if err != nil {
		return nil, nil, errors.Join(errDialler, err, ask.Refuse())
	}
	refuse := func(err error) error {
		_ = ask.Answer(encode(answer{Refuse: err.Error()})) // a dialler that left needs none
		return err
	}
	l.node.Use()
	if x, err = l.sessions.newSession(ctx, l.node, l.cfg, ask.From); err != nil {
		return nil, nil, refuse(err)
	}
	port, err := l.ports.take()
	if err == nil {
		x.release = func() { l.ports.give(port) }
		err = x.meet(port, q.Name, q.Window)
	}
	if err != nil {
		return nil, nil, errors.Join(errDialler, refuse(err), x.abandon())
	}
	if err := ask.Answer(encode(answer{Port: port, Name: x.name, Window: uint64(len(x.win))})); err != nil {
		return nil, nil, errors.Join(errDialler, err, x.abandon())
	}
	return x, q.Hello, nil
}
