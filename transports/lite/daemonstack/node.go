// Package daemonstack is LITE whose nodes live in daemons of the same machine (package daemon), as package stack is for
// nodes of this process.
//
// Each connection of calls, each listener and each server starts a daemon with the device below; all sessions of a
// process to one address share one. Daemons end with what they were started for, or with this process.
//
// There is no event mode, and there are no priorities. With Config.Cross, Poll sleeps for operations that were posted,
// but not for messages and bytes that the peer writes. A peer that closed is noticed within a tenth of a second.
// Handlers of calls run one after the other.
package daemonstack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/daemon"
	"github.com/rdmaperf/rdmaperf/transports/lite/session"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	MaxSessions = 8                      // of one daemon: a place as large as a window each, which the device may pin
	maxDepth    = 240                    // of operations, and of receives: a daemon's rings have 512 entries for both
	blockTime   = 20 * time.Second       // bounds what a session asks its daemon for
	peerCheck   = 500 * time.Millisecond // how often an idle session asks over the socket for the peer's window
	clockPolls  = 1 << 10                // empty polls between two looks at the clock for that
	closeTime   = 2 * time.Second        // bounds the end of what is outstanding when a session is closed
)

type node struct{ *Process }

func (s *Stack) open(ctx context.Context, listen, manager string, cfg transports.Config) (session.Node, error) {
	_, ring := session.RingFor(cfg.Window)
	p, err := s.Start(ctx, listen, manager, Need{Clients: MaxSessions + 1, Place: cfg.Window + 256<<10,
		Arena: 64<<20 + MaxSessions*ring, Secret: cfg.Secret})
	if err != nil {
		if manager != "" {
			err = fmt.Errorf("%w: %w", rdma.ErrUnreachable, err)
		}
		return nil, err
	}
	return node{p}, nil
}

func (n node) User(ctx context.Context, depth, receives int) (session.User, error) {
	c, err := n.Dial(ctx, daemon.ClientConfig{MaxReply: session.MaxQuestion, Timeout: blockTime, Depth: depth})
	if err != nil {
		return nil, err
	}
	return &user{Client: c, cross: n.cfg.Cross}, nil
}

type user struct {
	*daemon.Client
	cross    bool
	port     int
	prepared bool        // the peer's port was asked for
	window   rdma.Buffer // the session's, as memory that others registered
	checked  time.Time   // when the peer was
}

func (u *user) Alloc(n int) ([]byte, error) {
	b, err := u.Client.Alloc(n)
	if err != nil {
		return nil, fmt.Errorf("%w: the first session of a daemon decides how large they are", err)
	}
	u.window, err = rdma.Foreign(b)
	return b, err
}

func (u *user) Ask(ctx context.Context, question []byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, u.Interrupt)
	b, err := u.Call(0, session.Port, question)
	if !stop() && err == nil || err != nil && ctx.Err() != nil {
		err = ctx.Err() // the client was interrupted, for good
	}
	return b, err
}

func (u *user) Open(port, most int) error {
	u.port = port
	return u.Client.Open(port, most)
}

// WithPriority is the same user: a daemon has no priorities.
func (u *user) WithPriority(uint8) (session.User, error) { return u, nil }

func (u *user) PostMessage(peer, port int, tag uint32, local uint64, size, slot uint32, unsignaled, fence bool) error {
	if !u.prepared {
		if err := u.Prepare(peer, port); err != nil {
			return err
		}
		u.prepared = true
	}
	return u.Client.PostMessage(peer, port, tag, local, size, slot, unsignaled, fence)
}

func (u *user) PostReceive(i int, local uint64, room uint32) error {
	return u.Client.PostReceive(u.port, local, int(room), i)
}

// Receive copies nothing: the daemon wrote the message into its receive.
func (u *user) Receive(i int, _ []byte) (int, error) {
	m, err := u.Recv()
	if err == nil && m.Receive() != i {
		err = rdma.ErrProtocol // the daemon is not ours: receives are taken in their order
	}
	return len(m.Payload), err
}

// Progress has nothing to do: the daemon polls.
func (u *user) Progress() {}

func (u *user) Idle(polls, _ int, far lite.Handle) error {
	if u.cross && u.Pending() > 0 {
		u.Sleep()
	}
	if polls%clockPolls != 0 && !u.cross {
		return nil
	}
	now := time.Now()
	if now.Sub(u.checked) <= peerCheck {
		return nil
	}
	u.checked = now
	_, err := u.Size(far)
	return err
}

// Bye waits for what was posted. The peer notices the end of the window.
func (u *user) Bye(int) {
	var done [32]lite.Done
	for end := time.Now().Add(closeTime); u.Pending() > 0 && time.Now().Before(end); {
		if k, _ := u.Poll(done[:]); k == 0 {
			u.Sleep()
		}
	}
}

func (u *user) Close() (err error) {
	if u.window.Len() > 0 {
		err = u.window.Free()
	}
	return errors.Join(err, u.Client.Close())
}

type questions struct {
	mu     sync.Mutex // guards the client
	client *daemon.Client
	closed bool
}

func (n node) Questions(ctx context.Context) (session.Questions, error) {
	c, err := n.Dial(ctx, daemon.ClientConfig{Timeout: blockTime})
	if err != nil {
		return nil, err
	}
	if err := c.Serve(session.Port, session.MaxQuestion, MaxSessions); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &questions{client: c}, nil
}

func (q *questions) Addr() string { return q.client.Addr() }

func (q *questions) Close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	q.closed = true
	return q.client.Close()
}

// questionWait is how long Next sleeps between two polls: a set-up takes longer.
const questionWait = time.Millisecond

func (q *questions) Next(ctx context.Context) (*session.Question, error) {
	for {
		m, err := q.take()
		if err == nil && !m.OneWay {
			reply := func(f func() error) error {
				q.mu.Lock()
				defer q.mu.Unlock()
				if q.closed {
					return rdma.ErrClosed
				}
				return f()
			}
			return &session.Question{Bytes: m.Payload, From: m.From,
				Answer: func(b []byte) error { return reply(func() error { return m.Reply(0, b) }) },
				Refuse: func() error { return reply(m.Release) }}, nil
		}
		if err != nil && err != lite.ErrEmpty {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(questionWait):
		}
	}
}

func (q *questions) take() (m daemon.Message, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return m, rdma.ErrClosed
	}
	if m, err = q.client.Recv(); err == nil && m.OneWay {
		err = m.Release()
	}
	return m, err
}
