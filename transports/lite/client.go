package lite

import (
	"cmp"
	"context"
	"math/bits"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/procs"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// ClientConfig sizes a client. Zero values mean the defaults.
type ClientConfig struct {
	Depth       int // one-sided operations posted and not polled; 64
	Outstanding int // calls started and not finished; 1
	MaxReply    int // bytes of an answer; 4 KiB
	Wait        Waiting
	Priority    uint8         // 0 is low; all others are high for QoS, and travel to the device
	Timeout     time.Duration // of blocking calls; that of the node
	// Wake, when set, gets a token whenever something of the client completes. Start and PostMessage then never wait:
	// rdma.ErrQueueFull without room, ErrWait for a port that Prepare was not called for.
	Wake chan struct{}
}

// Client is what one goroutine uses a node through. It is not safe for concurrent use.
type Client struct {
	node      *Node
	cfg       ClientConfig
	num       int
	queuePair int // of the queue pairs to a peer, modulo their number

	ops        []op // ring of posted operations
	head, tail uint32
	calls      []*call
	next       int

	bounce     uint64 // own arena, for bytes that do not lie in it
	bounceRoom int
	word       uint64 // own arena: the result of a blocking atomic

	asleep      atomic.Bool
	wakeup      chan struct{}
	closed      atomic.Bool
	interrupted atomic.Bool // Interrupt

	following atomic.Bool // asleep while another client polls
	timer     *time.Timer // of that sleep

	due time.Duration // SW-Pri, by the device's clock: when the next operation may be posted

	wr    rdma.SendWR
	batch *[batchMost]rdma.SendWR // made for the first batch
	pair  [2]Op                   // of a lock
}

type op struct {
	left       atomic.Int32         // work requests that are not done
	bad        atomic.Uint32        // the first rdma.Status that is no success
	runs       atomic.Pointer[link] // of a run: the queue pair whose completion ends it
	behind     uint32               // of a run: how many right in front have no completion of their own
	entry      *entry
	nodes      uint32 // bits of the nodes that carry it out
	slot       uint32
	len        uint32
	kind       OpKind
	unsignaled bool
	class      class
	posted     time.Duration // SW-Pri: when
}

// bounceLen is how much of a long transfer of foreign memory is copied at a time.
const bounceLen = 256 << 10

// Client makes a client of the node.
func (n *Node) Client(cfg ClientConfig) (*Client, error) {
	c, err := n.newClient(cfg)
	if err != nil {
		return nil, opError("client", "", err)
	}
	return c, nil
}

func (n *Node) newClient(cfg ClientConfig) (_ *Client, err error) {
	cfg.Depth, cfg.Outstanding = cmp.Or(cfg.Depth, 64), cmp.Or(cfg.Outstanding, 1)
	cfg.MaxReply = cmp.Or(cfg.MaxReply, 4096)
	if cfg.Timeout <= 0 {
		cfg.Timeout = n.cfg.Timeout
	}
	if cfg.Depth < 1 || cfg.Depth > 1<<16 || cfg.Outstanding < 1 || cfg.Outstanding > maxCalls/2 || cfg.MaxReply < 0 ||
		cfg.MaxReply > 1<<30 {
		return nil, rdma.ErrInvalid
	}
	size := 1 << bits.Len(uint(cfg.Depth-1))
	c := &Client{node: n, cfg: cfg, ops: make([]op, size), wakeup: make(chan struct{}, 1)}
	if cfg.Wake != nil {
		c.wakeup = cfg.Wake
		c.asleep.Store(true)
	}
	defer func() {
		if err == nil {
			return
		}
		for _, s := range c.calls {
			n.calls.remove(n, s)
		}
		if c.word != 0 {
			n.free(c.word)
		}
	}()
	for range cfg.Outstanding {
		s, err := n.calls.add(n, c, cfg.MaxReply)
		if err != nil {
			return nil, err
		}
		c.calls = append(c.calls, s)
	}
	if c.word, err = n.alloc(8); err != nil {
		return nil, err
	}
	for i := range n.clients {
		if n.clients[i].CompareAndSwap(nil, c) {
			c.num, c.queuePair = i, i
			for m := n.most.Load(); m <= int32(i) && !n.most.CompareAndSwap(m, int32(i)+1); m = n.most.Load() {
			}
			return c, nil
		}
	}
	return nil, ErrNoSpace
}

// Close waits for what was posted to nodes that answer, gives up other calls, and frees the client, not its handles.
func (c *Client) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	end := time.Now().Add(c.cfg.Timeout)
	for c.head != c.tail && time.Now().Before(end) {
		o := &c.ops[c.head&uint32(len(c.ops)-1)]
		if o.left.Load() == 0 {
			c.head++
			continue
		}
		if !c.answer(o.nodes) {
			break
		}
		c.pollLinks(o.nodes)
		runtime.Gosched()
	}
	n := c.node
	for _, s := range c.calls {
		gen, state := s.state()
		if state == callWaiting && s.move(gen, callWaiting, callOrphan) || state == callZombie &&
			s.move(gen, callZombie, callOrphan) {
			continue // its buffer is freed with the answer, or with the peer
		}
		n.calls.remove(n, s)
	}
	c.calls = nil
	if c.head == c.tail { // else a device may still write there
		n.clients[c.num].CompareAndSwap(c, nil)
		n.free(c.word)
		if c.bounce != 0 {
			n.free(c.bounce)
		}
	}
	return nil
}

func (c *Client) answer(nodes uint32) bool {
	for ; nodes != 0; nodes &= nodes - 1 {
		if !c.node.Answers(bits.TrailingZeros32(nodes)) {
			return false
		}
	}
	return true
}

// Number distinguishes the clients of a node.
func (c *Client) Number() int { return c.num }

// Interrupt ends what the client waits for, now and later, with ErrTimeout. Any goroutine may call it.
func (c *Client) Interrupt() {
	c.interrupted.Store(true)
	c.node.Signal(c.wakeup)
}

// Alloc takes n bytes of the node's arena. Transfers from and to them copy nothing.
func (c *Client) Alloc(n int) ([]byte, error) {
	off, err := c.node.alloc(n)
	if err != nil {
		return nil, opError("allocate", "", err)
	}
	b := c.node.bytes(off, n)
	clear(b)
	return b, nil
}

// Free gives back what Alloc gave; no operation may be using it.
func (c *Client) Free(b []byte) error {
	off, ok := c.node.inside(b)
	if !ok || len(b) == 0 {
		return ErrMemory
	}
	c.node.free(off)
	return nil
}

func (c *Client) wake() {
	if c.asleep.Load() {
		c.node.Signal(c.wakeup)
	}
}

// UseQueuePair makes the client's requests to each peer take queue pair i, modulo their number; by default clients take
// turns. Clients that answer each other should share one: acknowledgements then travel with answers. rdma.ErrInvalid
// for a negative i, rdma.ErrBusy while operations or calls are under way.
func (c *Client) UseQueuePair(i int) error {
	switch {
	case i < 0:
		return opError("use queue pair", strconv.Itoa(i), rdma.ErrInvalid)
	case c.head != c.tail || c.started():
		return opError("use queue pair", strconv.Itoa(i), rdma.ErrBusy)
	}
	c.queuePair = i
	return nil
}

// QueuePair is the i of UseQueuePair, or the client's turn.
func (c *Client) QueuePair() int { return c.queuePair }

func (c *Client) started() bool {
	for _, s := range c.calls {
		if _, state := s.state(); state == callWaiting || state == callDone {
			return true
		}
	}
	return false
}

func (c *Client) link(p *peer) *link {
	k := len(p.links)
	if c.node.cfg.QoS == QoSHWSep {
		if c.cfg.Priority == 0 {
			return p.links[0]
		}
		return p.links[1+c.queuePair%(k-1)]
	}
	return p.links[c.queuePair%k]
}

func (c *Client) pollLinks(nodes uint32) {
	for ; nodes != 0; nodes &= nodes - 1 {
		if p := c.node.peers[bits.TrailingZeros32(nodes)].Load(); p != nil && len(p.links) > 0 {
			c.link(p).poll()
		}
	}
}

// waiter is the loop of everything that blocks: poll, after a time sleep, and after a longer one give up.
type waiter struct {
	turns int
	start time.Time
}

// waited is the time since the first look at the clock.
func (w *waiter) waited(now time.Time) time.Duration {
	if w.start.IsZero() {
		w.start = now
	}
	return now.Sub(w.start)
}

// wait follows a poll that found nothing; false at the deadline. long marks answers that take a while; nodes are those
// whose completions are waited for, 0 for an arrival.
func (w *waiter) wait(c *Client, long bool, nodes uint32) bool {
	w.turns++
	how := c.cfg.Wait
	if how == WaitPoll && w.turns%64 != 0 && (w.turns != 1 || cpus.Calm()) {
		return true
	}
	now := time.Now()
	waited := w.waited(now)
	if waited > c.cfg.Timeout || c.interrupted.Load() {
		return false
	}
	switch {
	case how == WaitPoll && (cpus.Spin(now) || !c.node.caps.Features.Has(rdma.FeatEvents)):
		c.node.poll() // the polling goroutine leaves arrivals to callers that poll
		c.node.notePolling()
		cpus.Yield()
	case how == WaitAdaptive && !long && waited < c.node.cfg.Spin:
	case !c.asleep.Swap(true):
		// The caller polls once more: what completes from now on wakes it.
	case nodes != 0:
		c.sleepOn(nodes)
	default:
		c.node.Rest(c.wakeup, c.cfg.Timeout-waited)
	}
	return true
}

// served notes the end of a wait that polling alone served.
func (w *waiter) served(c *Client) {
	if w.turns > 0 && c.cfg.Wait == WaitPoll && !c.asleep.Load() {
		cpus.Served()
	}
}

// waitPolling is again for what nothing wakes: room that the peer makes by writing a word.
func (w *waiter) waitPolling(c *Client) bool {
	w.turns++
	if w.turns%64 != 0 {
		return true
	}
	waited := w.waited(time.Now())
	if c.cfg.Wait == WaitPoll || waited < c.node.cfg.Spin {
		c.node.poll()
		c.node.notePolling()
		procs.Yield()
	} else {
		time.Sleep(min(waited, pollPause))
	}
	return waited <= c.cfg.Timeout && !c.interrupted.Load()
}

// sleepOn sleeps until a completion of one of the nodes may be there. One client sleeps in a queue, and wakes others.
func (c *Client) sleepOn(nodes uint32) {
	id := bits.TrailingZeros32(nodes)
	p := c.node.peers[id].Load()
	if p == nil || p.dead.Load() || !c.node.caps.Features.Has(rdma.FeatEvents) {
		time.Sleep(pollPause)
		return
	}
	l := c.link(p)
	if !l.waitMu.TryLock() {
		c.node.SleepUntil(c.wakeup, pollPause)
		return
	}
	most := 100 * time.Millisecond
	if nodes&(nodes-1) != 0 {
		most = pollPause // the others have completion queues of their own
	}
	if l.cq.Arm(false) == nil && l.poll() == 0 {
		ctx, cancel := context.WithTimeout(c.node.ctx, most)
		_ = l.cq.Wait(ctx) // the next poll finds what there is
		cancel()
	}
	l.waitMu.Unlock()
	l.poll()
	for i := range c.node.most.Load() { // one of them must sleep there now
		if o := c.node.clients[i].Load(); o != nil && o != c {
			o.wake()
		}
	}
}
