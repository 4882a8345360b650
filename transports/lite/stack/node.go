package stack

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/session"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type node struct{ *lite.Node }

func (s *Stack) open(ctx context.Context, listen, manager string, need int, secret []byte) (session.Node, error) {
	cfg := s.cfg.node(need)
	cfg.Listen, cfg.Manager, cfg.Secret = listen, manager, string(secret)
	n, err := lite.Open(ctx, s.dev, cfg)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.nodes = append(s.nodes, n)
	s.mu.Unlock()
	return node{n}, nil
}

// leaveTime bounds the orderly end of connections: a peer that is alive answers at once.
const leaveTime = 250 * time.Millisecond

func (n node) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	n.Leave(ctx)
	cancel()
	return n.Node.Close()
}

// User makes a client that polls. It counts unsignaled operations within depth.
func (n node) User(ctx context.Context, depth, _ int) (session.User, error) {
	u := &user{node: n, depth: depth, timeout: timeLeft(ctx)}
	return u, u.open(0)
}

// user is a client for operations of one priority of a session.
type user struct {
	*lite.Client
	node    node
	depth   int
	timeout time.Duration // of what blocks
	port    *lite.Port    // of the session's first user
	portNum int
}

// Tags of messages to a session's port.
const (
	tagData = iota
	tagBye  // the sender closes
)

// idlePolls empty polls pass between two checks of whether the peer is there.
const idlePolls = 1 << 12

func (u *user) open(priority uint8) (err error) {
	u.Client, err = u.node.Client(lite.ClientConfig{Depth: u.depth, Wait: lite.WaitPoll, Priority: priority,
		Timeout: u.timeout})
	return err
}

func (u *user) ID() int { return u.node.ID() }

func (u *user) Alloc(n int) ([]byte, error) {
	b, err := u.Client.Alloc(n)
	if errors.Is(err, lite.ErrNoSpace) {
		err = fmt.Errorf("%w: more with arena=BYTES", err)
	}
	return b, err
}

func (u *user) Ask(ctx context.Context, question []byte) ([]byte, error) {
	c, err := u.node.Client(lite.ClientConfig{Wait: lite.WaitAdaptive, MaxReply: session.MaxQuestion,
		Timeout: timeLeft(ctx)})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, c.Interrupt)
	defer stop()
	b, err := c.Call(0, session.Port, question)
	if e := ctx.Err(); e != nil && errors.Is(err, lite.ErrTimeout) {
		err = e
	}
	return append([]byte(nil), b...), err // the client's memory is freed
}

// timeLeft is until ctx ends; the default of the waist without a deadline.
func timeLeft(ctx context.Context) time.Duration {
	end, ok := ctx.Deadline()
	if !ok {
		return 10 * time.Second
	}
	return max(time.Until(end), time.Millisecond)
}

// Open has the session's two windows share a queue pair: its port has one number at both ends.
func (u *user) Open(port, most int) (err error) {
	if u.port, err = u.node.Serve(port, lite.PortConfig{MaxRequest: most}); err != nil {
		return err
	}
	u.portNum = port
	return u.UseQueuePair(port)
}

func (u *user) WithPriority(priority uint8) (session.User, error) {
	v := &user{node: u.node, depth: u.depth, timeout: u.timeout, portNum: u.portNum}
	if err := v.open(priority); err != nil {
		return nil, err
	}
	if err := v.UseQueuePair(v.portNum); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

// PostReceive has nothing to do: messages wait in the ring of the port.
func (u *user) PostReceive(int, uint64, uint32) error { return nil }

func (u *user) Receive(_ int, dst []byte) (int, error) {
	r, err := u.port.TryRecv()
	if err != nil {
		u.node.Idle()
		return 0, err
	}
	switch n := len(r.Payload); {
	case r.Tag == tagBye:
		err = errBye
	case n > len(dst):
		err = lite.ErrTooBig
	}
	n := copy(dst, r.Payload)
	r.Release()
	return n, err
}

var errBye = errors.New("the peer closed it")

func (u *user) Progress() { u.node.Progress() }

func (u *user) Idle(polls, peer int, _ lite.Handle) error {
	if polls%idlePolls != 0 {
		return nil
	}
	return u.node.Dead(peer)
}

// Unmap and FreeRegion end a session. They ask the manager, and do not wait for one that does not answer.
func (u *user) Unmap(h lite.Handle) error {
	if !u.node.Answers(0) {
		return lite.ErrTimeout
	}
	return u.Client.Unmap(h)
}

func (u *user) FreeRegion(h lite.Handle) error {
	if !u.node.Answers(0) {
		return lite.ErrTimeout
	}
	return u.Client.FreeRegion(h)
}

func (u *user) Bye(peer int) {
	if u.port != nil && u.node.Answers(peer) {
		_ = u.SendTagged(peer, u.portNum, tagBye, nil) // a peer that left needs none
	}
}

func (u *user) Close() error {
	if u.port != nil {
		u.port.Close()
	}
	if u.Client == nil {
		return nil
	}
	return u.Client.Close()
}

type questions struct {
	node node
	port *lite.Port
}

func (n node) Questions(context.Context) (session.Questions, error) {
	p, err := n.Serve(session.Port, lite.PortConfig{MaxRequest: session.MaxQuestion})
	if err != nil {
		return nil, err
	}
	return &questions{node: n, port: p}, nil
}

func (q *questions) Addr() string { return q.node.Addr() }

func (q *questions) Close() error {
	q.port.Close()
	return nil
}

// questionWait is how often Next checks its context.
const questionWait = 20 * time.Millisecond

func (q *questions) Next(ctx context.Context) (*session.Question, error) {
	for {
		r, err := q.port.Recv(questionWait, lite.WaitSleep)
		switch {
		case err == nil && !r.OneWay:
			return &session.Question{Bytes: r.Payload, From: r.From, Answer: r.Reply,
				Refuse: func() error { return r.ReplyError(lite.ErrFail) }}, nil
		case err == nil:
			r.Release()
		case errors.Is(err, lite.ErrClosed):
			return nil, rdma.ErrClosed
		case !errors.Is(err, lite.ErrTimeout):
			return nil, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}
