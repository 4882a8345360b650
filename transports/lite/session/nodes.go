package session

import (
	"context"
	"errors"
	"sync"
)

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
