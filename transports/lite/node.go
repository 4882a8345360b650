package lite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/regcache"
	"github.com/rdmaperf/rdmaperf/transports/lite/extent"
	"github.com/rdmaperf/rdmaperf/transports/lite/wire"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Node is one member of a cluster, for all clients of this process. Its methods are safe for concurrent use.
type Node struct {
	dev   rdma.Device
	caps  rdma.Caps
	cfg   Config
	id    int
	token [8]byte

	buf   rdma.Buffer // all of arena
	arena *rdma.Arena
	cache *regcache.Cache // of the one registration: the arena's, made when it is mapped
	mr    *regcache.Region
	mem   []byte
	base  uint64

	segments []Segment

	spaceMu   sync.Mutex
	space     *extent.Space
	fresh     uint64                       // nothing behind it was ever handed out
	owned     map[uint64]map[uint64]uint64 // region → its extents here, offset and length
	published map[uint64]bool              // regions in a client's own memory (Publish)

	lis    rdma.Listener
	recvCQ rdma.CQ

	peers   [MaxNodes]atomic.Pointer[peer]
	links   [MaxNodes * MaxLinks]atomic.Pointer[link]
	clients [MaxClients]atomic.Pointer[Client]
	most    atomic.Int32 // clients that there were at once: those in front of it may be there
	handles handleTable
	calls   callTable
	ports   [wire.Ports]atomic.Pointer[Port]

	pollMu   sync.Mutex
	wcs      [pollBatch]rdma.WC
	arrival  Request       // the arrival at hand, under pollMu
	activity atomic.Uint64 // polls of arrivals by callers
	sleeping atomic.Pointer[context.CancelFunc]
	device   sync.Mutex    // held by the one that sleeps in the device
	left     chan struct{} // token: the polling goroutine sleeps there no more
	resting  atomic.Pointer[rest]
	aside    atomic.Int32 // callers that sleep while another has the device
	parked   atomic.Bool  // the polling goroutine waits for the end of a caller's sleep
	kick     chan struct{}
	deferred atomic.Int32 // links with a backlog

	leader    atomic.Pointer[Client] // the caller that polls for all
	followers atomic.Int32           // callers that sleep meanwhile

	load load // of high priority, for SW-Pri

	owners owners // locks that are held here

	mu      sync.Mutex
	closed  bool
	lost    []*peer // lost and not yet freed
	ctlMu   sync.Mutex
	ctl     *Client // for control calls; under ctlMu
	manager *manager
	server  *nodeServer

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	serial atomic.Uint64 // numbers for what may have to be called off
	counts counts
}

type counts struct {
	heads, credits, messages, pieces atomic.Uint64
}

// Counts is a snapshot of what the node posted.
type Counts struct {
	Messages uint64 // requests, one-way messages and replies
	Heads    uint64 // positions of rings written to senders
	Credits  uint64 // counts of receives written to senders
	Pieces   uint64 // work requests of one-sided operations
	Links    int    // queue pairs, all peers together
}

// Counts reads the counters.
func (n *Node) Counts() Counts {
	c := Counts{Messages: n.counts.messages.Load(), Heads: n.counts.heads.Load(), Credits: n.counts.credits.Load(),
		Pieces: n.counts.pieces.Load()}
	for i := range n.links {
		if n.links[i].Load() != nil {
			c.Links++
		}
	}
	return c
}

// ID is the node's number in the cluster; 0 is the manager.
func (n *Node) ID() int { return n.id }

// Addr is where other nodes reach it.
func (n *Node) Addr() string { return n.lis.Addr() }

// Name is the tier over the device, as results print it.
func (n *Node) Name() string {
	p := []string{fmt.Sprintf("k=%d", n.cfg.Links)}
	if n.cfg.Sends {
		p = append(p, "sends")
	}
	switch n.cfg.QoS {
	case QoSHWSep:
		p = append(p, "hwsep")
	case QoSSWPri:
		p = append(p, "swpri")
	}
	return "lite(" + strings.Join(p, ",") + ")+" + n.dev.Name()
}

// inside is the offset of b in the arena; ok is false where it lies elsewhere.
func (n *Node) inside(b []byte) (off uint64, ok bool) {
	if len(b) == 0 {
		return 0, true
	}
	addr := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	if addr < n.base || addr-n.base > uint64(len(n.mem)) || uint64(len(b)) > uint64(len(n.mem))-(addr-n.base) {
		return 0, false
	}
	return addr - n.base, true
}

func (n *Node) alloc(size int) (uint64, error) {
	n.spaceMu.Lock()
	defer n.spaceMu.Unlock()
	off, err := n.space.Alloc(uint64(size))
	if err != nil {
		return 0, ErrNoSpace
	}
	n.fresh = max(n.fresh, off+uint64(size))
	return off, nil
}

func (n *Node) copyOf(b []byte) (off uint64, own []byte, err error) {
	if off, err = n.alloc(len(b)); err == nil {
		own = n.bytes(off, len(b))
		copy(own, b)
	}
	return off, own, err
}

func (n *Node) free(off uint64) {
	n.spaceMu.Lock()
	defer n.spaceMu.Unlock()
	// Only what alloc gave comes here.
	_ = n.space.Free(off)
}

func (n *Node) bytes(off uint64, size int) []byte {
	return n.mem[off : off+uint64(size) : off+uint64(size)]
}

// Open makes a node and joins it to its cluster. It owns neither dev nor ctx, which bounds the joining only.
func Open(ctx context.Context, dev rdma.Device, cfg Config) (*Node, error) {
	caps := dev.Caps()
	cfg, err := cfg.normal(&caps)
	if err != nil {
		return nil, opError("join", cfg.Manager, err)
	}
	n := &Node{dev: dev, caps: caps, cfg: cfg, token: wire.TokenOf(cfg.Secret), kick: make(chan struct{}, 1),
		left:  make(chan struct{}, 1),
		owned: map[uint64]map[uint64]uint64{}, published: map[uint64]bool{}}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.handles.init()
	if err = n.create(ctx); err == nil {
		err = n.join(ctx)
	}
	if err != nil {
		return nil, opError("join", cfg.Manager, errors.Join(err, n.Close()))
	}
	return n, nil
}

func (n *Node) create(ctx context.Context) (err error) {
	// Huge pages, where the system has some: a NIC has few translations.
	pages := rdma.PagesAuto
	if n.cfg.Segments > 0 {
		pages = rdma.PagesBase // other memory is laid over its end
	}
	arena, err := rdma.NewArena(n.cfg.Arena+n.cfg.segmentsLen(), rdma.ArenaConfig{Pages: pages})
	if err != nil {
		return err
	}
	n.arena, n.buf = arena, arena.Buffer()
	n.mem, n.base = n.buf.Bytes(), n.buf.Addr()
	if err := n.makeSegments(); err != nil {
		return err
	}
	access := rdma.LocalWrite | rdma.RemoteWrite | rdma.RemoteRead
	if n.caps.Ops.Has(rdma.OpFetchAdd) {
		access |= rdma.RemoteAtomic
	}
	// All of it is package rdma's own memory: nothing unmaps it unseen.
	if n.cache, err = regcache.New(n.dev, regcache.Config{Source: regcache.SourceArena}); err != nil {
		return err
	}
	scope, err := n.cache.Scope(0)
	if err == nil {
		n.mr, err = scope.Get(n.buf, access)
	}
	if err != nil {
		return err
	}
	n.space = extent.New(mailEnd, uint64(len(n.mem)-n.cfg.segmentsLen()-mailEnd)&^(extent.Align-1))
	if n.recvCQ, err = n.dev.NewCQ(min(MaxNodes*n.cfg.Links*n.cfg.Depth, n.caps.MaxCQE)); err != nil {
		n.recvCQ = nil
		return err
	}
	if n.lis, err = n.dev.Listen(ctx, n.cfg.Listen, MaxNodes*n.cfg.Links); err != nil {
		n.lis = nil
		return err
	}
	if n.ctl, err = n.newClient(ClientConfig{Outstanding: 1, MaxReply: controlReply}); err != nil {
		return err
	}
	return n.serveControl()
}

// Progress takes what arrived, as every caller that waits does, for programs that poll memory that others write.
func (n *Node) Progress() int {
	k := n.poll()
	if k == 0 {
		n.Idle()
	}
	return k
}

// Idle counts a poll that found nothing: the polling goroutine leaves arrivals to callers that poll.
func (n *Node) Idle() {
	if n.activity.Add(1)%wakeEvery == 0 {
		n.cancelSleep()
	}
}

// Yield lets goroutines and other threads run, for a caller that polls by itself.
func (n *Node) Yield() { cpus.Yield() }

// Arena is how many bytes the node registered.
func (n *Node) Arena() int { return len(n.mem) }

// Left is how many bytes of the arena are free.
func (n *Node) Left() int {
	n.spaceMu.Lock()
	defer n.spaceMu.Unlock()
	return int(n.space.Left())
}

// Leave disconnects from every node in order, until ctx ends: what was posted arrives. Close follows.
func (n *Node) Leave(ctx context.Context) {
	for i := range n.peers {
		p := n.peers[i].Load()
		if p == nil || p.dead.Load() {
			continue
		}
		for _, l := range p.links {
			_ = l.qp.Disconnect(ctx) // a peer that does not answer in time is disconnected by Close
		}
	}
}

// Close leaves the cluster at once and frees everything: clients, ports, regions that lie here. Idempotent.
func (n *Node) Close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	n.mu.Unlock()
	for i := range n.ports {
		if p := n.ports[i].Load(); p != nil {
			p.Close()
		}
	}
	n.cancel()
	var errs []error
	if n.lis != nil {
		errs = append(errs, n.lis.Close())
	}
	n.wake()
	n.wg.Wait()
	for i := range n.peers {
		if p := n.peers[i].Load(); p != nil {
			n.lose(p, ErrClosed)
		}
	}
	n.reap()
	n.calls.failAll(n, nil, int32(ErrClosed))
	if n.recvCQ != nil {
		errs = append(errs, n.recvCQ.Close())
	}
	if n.mr != nil {
		errs = append(errs, n.mr.Revoke())
	}
	if n.arena != nil {
		errs = append(errs, n.arena.Close()) // the cache holds what the device still has
	}
	if n.cache != nil {
		errs = append(errs, n.cache.Close())
	}
	n.closeSegments()
	return errors.Join(errs...)
}
