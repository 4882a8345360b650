package stack

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/ring"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Stack is LITE over one device. Its methods are safe for concurrent use.
type Stack struct {
	dev  rdma.Device
	caps rdma.Caps
	cfg  Config

	mu     sync.Mutex
	nodes  map[string]*shared // by the address that they joined
	serial int
}

var (
	_ transports.Transport     = (*Stack)(nil)
	_ transports.CallTransport = (*Stack)(nil)
)

// New makes the stack of dev, and owns dev from its success on. rdma.ErrNotSupported:
// the device cannot carry it.
func New(dev rdma.Device, cfg Config) (*Stack, error) {
	caps := dev.Caps()
	if err := caps.Missing(rdma.Need{Ops: rdma.Ops(rdma.OpSend, rdma.OpWrite, rdma.OpRead), SGE: 2}); err != nil {
		return nil, err
	}
	if !caps.Ops.Has(rdma.OpWriteImm) {
		cfg.Sends = true
	}
	switch {
	case cfg.Sched && caps.Priorities < 2:
		return nil, fmt.Errorf("%s has no priorities to schedule by: %w", dev.Name(), rdma.ErrNotSupported)
	case cfg.QoS == lite.QoSHWSep && cfg.Links == 1:
		return nil, fmt.Errorf("queue pairs set apart need at least two: %w", rdma.ErrInvalid)
	case cfg.Arena < 0 || cfg.Links < 0 || cfg.Links > lite.MaxLinks:
		return nil, fmt.Errorf("%d queue pairs, arena of %d bytes: %w", cfg.Links, cfg.Arena, rdma.ErrInvalid)
	}
	return &Stack{dev: dev, caps: caps, cfg: cfg, nodes: map[string]*shared{}}, nil
}

// Name is the tier over its device, with parameters.
func (s *Stack) Name() string { return s.cfg.name(s.dev) }

// Device is the device below, which the stack owns.
func (s *Stack) Device() rdma.Device { return s.dev }

// Counts are those of the device.
func (s *Stack) Counts() []rdma.Counts { return rdma.CountsOf(s.dev) }

// maxDepth bounds the operations of a session. Arbitrary: the ring of them is memory.
const maxDepth = 1 << 12

// Caps are those of sessions, and of calls.
func (s *Stack) Caps() transports.Caps {
	d := &s.caps
	kinds := transports.Kinds(transports.KindSend, transports.KindRecv, transports.KindWrite, transports.KindRead, transports.KindCall)
	if d.Ops.Has(rdma.OpFetchAdd) {
		kinds |= transports.Kinds(transports.KindFetchAdd)
	}
	if d.Ops.Has(rdma.OpCmpSwap) {
		kinds |= transports.Kinds(transports.KindCmpSwap)
	}
	c := transports.Caps{
		Label: d.Label, Kinds: kinds, LastByteLast: d.Features.Has(rdma.FeatLastByteLast), InProcess: d.Label == rdma.LabelMem || d.Clock != nil, Clock: d.Clock,
		Unaided: d.Unaided, MaxMsg: ring.MaxRecord(ring.MaxSize) - wire.RequestLen, MaxSessions: MaxSessions, MaxDepth: maxDepth, MaxReadDepth: d.MaxRDAtom,
		Priorities: d.Priorities, LocalComplete: d.Completion == rdma.CompletionLocal,
		CallModes: transports.CallModes(transports.CallUnary, transports.CallStream, transports.CallOneWay),
	}
	if s.cfg.QoS != lite.QoSNone {
		c.Priorities = max(c.Priorities, 2)
	}
	return c
}

// CallCost is how calls are carried and waited for.
func (s *Stack) CallCost() transports.CallCost {
	form := "write with immediate"
	if s.cfg.Sends {
		form = "write and send"
	}
	c := transports.CallCost{Form: form, Mode: "poll by " + s.cfg.Polling.String(), BusyTime: s.cfg.Spin}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.nodes {
		c.Registered = max(c.Registered, n.Arena())
	}
	return c
}

// Close closes the device; rdma.ErrBusy while something is open.
func (s *Stack) Close() error { return s.dev.Close() }

// shared is a node with those who use it.
type shared struct {
	*lite.Node
	stack *Stack
	addr  string // of the cluster, for those who joined
	made  chan struct{}
	err   error
	users int // under stack.mu
}

// join is the node of the cluster at addr, which is made for the first who asks.
func (s *Stack) join(ctx context.Context, addr string, need int, secret []byte) (*shared, error) {
	s.mu.Lock()
	n := s.nodes[addr]
	first := n == nil
	if first {
		n = &shared{stack: s, addr: addr, made: make(chan struct{})}
		s.nodes[addr] = n
	}
	n.users++
	s.mu.Unlock()
	if first {
		cfg := s.cfg.node(need)
		cfg.Listen, cfg.Manager, cfg.Secret = ":0", addr, string(secret)
		n.Node, n.err = lite.Open(ctx, s.dev, cfg)
		close(n.made)
	}
	select {
	case <-n.made:
	case <-ctx.Done():
		// It may be made all the same, and be nobody's but this caller's.
		if n.forget() {
			<-n.made // by who made it: that one had a use of it until then
			if n.err == nil {
				return nil, errors.Join(ctx.Err(), n.close())
			}
		}
		return nil, ctx.Err()
	}
	if n.err != nil {
		n.forget()
		return nil, n.err
	}
	return n, nil
}

// found makes a cluster at addr.
func (s *Stack) found(ctx context.Context, addr string, need int, secret []byte) (*shared, error) {
	cfg := s.cfg.node(need)
	cfg.Listen, cfg.Secret = addr, string(secret)
	node, err := lite.Open(ctx, s.dev, cfg)
	if err != nil {
		return nil, err
	}
	return &shared{Node: node, stack: s, users: 1}, nil
}

// use counts one more user.
func (n *shared) use() {
	n.stack.mu.Lock()
	n.users++
	n.stack.mu.Unlock()
}

// forget counts one user less, and tells whether it was the last.
func (n *shared) forget() (last bool) {
	s := n.stack
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.users--; n.users > 0 {
		return false
	}
	if s.nodes[n.addr] == n {
		delete(s.nodes, n.addr)
	}
	return true
}

// leaveGrace bounds the orderly end of connections. Arbitrary.
const leaveGrace = 250 * time.Millisecond

// done ends one use; the last one closes the node.
func (n *shared) done() error {
	if !n.forget() {
		return nil
	}
	return n.close()
}

// close ends the node, which nobody uses any more.
func (n *shared) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveGrace)
	n.Leave(ctx)
	cancel()
	return n.Node.Close()
}

// number is new in this process, for names of regions.
func (s *Stack) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serial++
	return s.serial
}
