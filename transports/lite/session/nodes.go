package session

import (
	"context"
	"errors"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/lite"
)

// Node is a node of LITE.
type Node interface {
	// User makes what one session uses the node through, with so many operations and receives outstanding.
	User(ctx context.Context, depth, receives int) (User, error)
	// Questions opens the port at which diallers ask for sessions.
	Questions(ctx context.Context) (Questions, error)
	// Close ends the node.
	Close() error
}

// User belongs to one goroutine. Where a method has the name of one of [lite.Client], it has its contract, too.
type User interface {
	ID() int
	Alloc(n int) ([]byte, error)
	Offset(b []byte) (uint64, error)
	Free(b []byte) error
	Publish(r lite.RegionConfig, b []byte) (lite.Handle, error)
	Map(name string, want lite.Perm, password string) (lite.Handle, error)
	Unmap(h lite.Handle) error
	FreeRegion(h lite.Handle) error

	// Ask calls port 0 of the manager. ctx bounds the wait for its answer.
	Ask(ctx context.Context, question []byte) ([]byte, error)
	// Open opens the session's port for messages of at most most bytes.
	Open(port, most int) error
	// WithPriority is the user for operations of that priority: another one, which only posts and polls and is closed by
	// its own Close, or this one where the node has no priorities.
	WithPriority(priority uint8) (User, error)

	Post(ops []lite.Op) (n int, err error)
	PostMessage(node, port int, tag uint32, local uint64, size, slot uint32, unsignaled, fence bool) error
	Poll(dst []lite.Done) (n int, err error)
	Pending() int
	// PostReceive posts receive i into room bytes at local.
	PostReceive(i int, local uint64, room uint32) error
	// Receive moves the oldest message into receive i at dst, the first without one, and returns its length.
	// lite.ErrEmpty: none is there; lite.ErrTooBig: it is longer than dst and lost; others: there will be none.
	Receive(i int, dst []byte) (int, error)
	// Progress lets the node take what arrives, where that is the poller's work.
	Progress()
	// Idle is called after the polls-th Poll in a row that returned nothing. An error is the end of the session by the
	// peer, a node whose window is far.
	Idle(polls, peer int, far lite.Handle) error
	// Bye ends the session behind everything that was posted, so that the peer notices.
	Bye(peer int)
	Close() error
}

// Questions is the port of a listener. Its methods are safe for concurrent use.
type Questions interface {
	// Addr is where diallers join.
	Addr() string
	// Next waits for a question until ctx ends; rdma.ErrClosed after Close.
	Next(ctx context.Context) (*Question, error)
	// Close closes the port and is idempotent.
	Close() error
}

// Question is one dialler's. Exactly one of Answer and Refuse is called.
type Question struct {
	Bytes  []byte
	From   int // node
	Answer func(b []byte) error
	Refuse func() error // of a question that is malformed
}

// Nodes are the nodes of a stack: all uses of one address share one. Its methods are safe for concurrent use.
type Nodes struct {
	mu     sync.Mutex
	joined map[string]*Shared // by the address that they joined
	serial int
}

// Shared is a node that is closed with its last use.
type Shared struct {
	Node
	nodes  *Nodes
	addr   string // of the cluster; empty for its manager
	opened chan struct{}
	err    error
	uses   int // under nodes.mu
}

// Join is one use of the node in the cluster at addr. The first caller opens it; ctx bounds the wait of the others.
func (s *Nodes) Join(ctx context.Context, addr string, open func() (Node, error)) (*Shared, error) {
	s.mu.Lock()
	n := s.joined[addr]
	first := n == nil
	if first {
		n = &Shared{nodes: s, addr: addr, opened: make(chan struct{})}
		if s.joined == nil {
			s.joined = map[string]*Shared{}
		}
		s.joined[addr] = n
	}
	n.uses++
	s.mu.Unlock()
	if first {
		n.Node, n.err = open()
		close(n.opened)
	}
	select {
	case <-n.opened:
	case <-ctx.Done():
		if n.unuse() { // the first caller gave up, too
			<-n.opened
			if n.err == nil {
				return nil, errors.Join(ctx.Err(), n.Node.Close())
			}
		}
		return nil, ctx.Err()
	}
	if n.err != nil {
		n.unuse()
		return nil, n.err
	}
	return n, nil
}

// Found is one use of a node that manages a cluster of its own.
func (s *Nodes) Found(n Node) *Shared { return &Shared{Node: n, nodes: s, uses: 1} }

// Joined calls f for each node that has joined a cluster.
func (s *Nodes) Joined(f func(Node)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.joined {
		select {
		case <-n.opened:
			if n.err == nil {
				f(n.Node)
			}
		default:
		}
	}
}

func (s *Nodes) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	return s.serial
}

// Use counts one more use.
func (n *Shared) Use() {
	n.nodes.mu.Lock()
	n.uses++
	n.nodes.mu.Unlock()
}

// unuse counts one use less; last is true for the last one.
func (n *Shared) unuse() (last bool) {
	s := n.nodes
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.uses--; n.uses > 0 {
		return false
	}
	if s.joined[n.addr] == n {
		delete(s.joined, n.addr)
	}
	return true
}

// Done ends one use, and with the last one the node.
func (n *Shared) Done() error {
	if !n.unuse() {
		return nil
	}
	return n.Node.Close()
}
