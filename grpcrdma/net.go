package grpcrdma

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Net makes connections over one device. All methods are safe for concurrent use.
type Net struct {
	dev  rdma.Device
	caps rdma.Caps
	cfg  Config
	set  *bpev.Set

	probes time.Duration // how often waiting readers probe; 0 for never

	making sync.WaitGroup  // connections being made, and tidyUp
	ctx    context.Context // of those that are dialled; ends with the Net
	cancel context.CancelFunc

	mu        sync.Mutex
	conns     map[*Conn]struct{}
	listeners map[*Listener]struct{}
	reserved  int // connections being made
	tidying   bool

	cache *regcache.Cache // of registrations
	scope *regcache.Scope
	store *regcache.Store // of memory, behind the connections that had it
}

// New makes a Net over dev, which stays the caller's and must outlive it.
// rdma.ErrInvalid or bpev.ErrConfig for a configuration out of range,
// rdma.ErrNotSupported when the device lacks what it asks.
func New(dev rdma.Device, cfg Config) (*Net, error) {
	fail := func(err error) (*Net, error) {
		return nil, &rdma.OpError{Op: "open grpcrdma over", Object: dev.Name(), Err: err}
	}
	n := &Net{dev: dev, caps: dev.Caps(), conns: map[*Conn]struct{}{}, listeners: map[*Listener]struct{}{}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	var err error
	if n.cfg, err = cfg.normal(&n.caps); err != nil {
		return fail(err)
	}
	if n.caps.Completion == rdma.CompletionAck {
		n.probes = max(n.cfg.Probe, 0)
	}
	if err = n.openMemory(); err != nil {
		return fail(err)
	}
	if n.set, err = bpev.New(rdma.Parked(context.Background()), n.cfg.Polling); err != nil {
		return fail(errors.Join(err, n.closeMemory()))
	}
	return n, nil
}

// Config is the configuration in use, with every default filled in.
func (n *Net) Config() Config { return n.cfg }

// ConnMemory is the registered memory of one connection in bytes: of the open ones the mean, else that of a new one.
// Sinks are not in it.
func (n *Net) ConnMemory() int {
	s := n.Stats()
	if s.Conns == 0 {
		return n.cfg.memory()
	}
	return (s.Memory - s.Sinks) / s.Conns
}

// Stats is what a Net holds and what waiting took.
type Stats struct {
	Conns   int // open connections
	Memory  int // registered bytes of all of them
	Sinks   int // of that, what is granted to peers for long messages
	Pooled  int // bytes kept for the next connections, in whole pages
	Polling bpev.Stats
}

// Stats is a snapshot.
func (n *Net) Stats() Stats {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken, mapped := n.store.Sizes()
	s := Stats{Conns: len(n.conns), Pooled: mapped - taken, Polling: n.set.Stats()}
	for c := range n.conns {
		s.Sinks += c.sinks.held()
		s.Memory += c.Memory()
	}
	s.Memory += s.Sinks
	return s
}

// join makes a connection, which meet connects to its peer, and lists it when it works.
func (n *Net) join(meet func(c *Conn) error) (*Conn, error) {
	if err := n.reserve(); err != nil {
		return nil, err
	}
	defer func() {
		n.mu.Lock()
		n.reserved--
		n.mu.Unlock()
		n.making.Done()
	}()
	c, err := n.newConn()
	if err != nil {
		return nil, err
	}
	if err := meet(c); err != nil {
		c.release()
		return nil, err
	}
	n.mu.Lock()
	closed := n.ctx.Err() != nil
	if !closed {
		n.conns[c] = struct{}{}
		if !n.tidying {
			n.tidying = true
			n.making.Go(n.tidyUp)
		}
	}
	n.mu.Unlock()
	if closed {
		c.Close()
		return nil, net.ErrClosed
	}
	return c, nil
}

// reserve takes a place for a connection that is being made.
func (n *Net) reserve() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.ctx.Err() != nil:
		return net.ErrClosed
	case len(n.conns)+n.reserved >= n.cfg.MaxConns:
		return fmt.Errorf("%d connections are open, the limit of this side: %w", n.cfg.MaxConns, rdma.ErrBusy)
	}
	n.reserved++
	n.making.Add(1)
	return nil
}

func (n *Net) leave(c *Conn) {
	n.mu.Lock()
	delete(n.conns, c)
	n.mu.Unlock()
}

// Close closes all listeners and connections, ends those that are being made, and
// joins the pollers: nothing of the Net is left on the device. Idempotent.
func (n *Net) Close() error {
	n.mu.Lock()
	n.cancel()
	conns, listeners := slices.Collect(maps.Keys(n.conns)), slices.Collect(maps.Keys(n.listeners))
	n.mu.Unlock()
	for _, l := range listeners {
		l.Close()
	}
	n.making.Wait()       // their objects must be gone before the device is
	var wg sync.WaitGroup // each may wait closeGrace for its peer
	for _, c := range conns {
		wg.Go(func() { c.Close() })
	}
	wg.Wait()
	n.set.Close()
	return n.closeMemory()
}
