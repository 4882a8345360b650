package iwarp

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// notify is what an armed CQ waits for.
type notify uint8

const (
	notifyNone      notify = iota
	notifySolicited        // a solicited or failed completion
	notifyAny
)

// cq is a completion queue: a ring under its own mutex, and the list of QPs
// that a poll drives.
type cq struct {
	dev *Device
	qps atomic.Pointer[attached] // replaced whole on change, so that Poll takes no lock for it

	mu      sync.Mutex
	ring    []rdma.WC // power of two
	tags    []cqTag   // beside ring
	members []*qp     // every QP that ever attached and is not detached; tags name places in it
	depth   uint32
	head    uint32
	tail    uint32
	armed   notify
	fired   bool
	overrun bool
	closed  bool
	users   int
	asleep  bool // a Wait sleeps, or is about to

	waited  atomic.Bool // Wait was used: the sockets are in the poller
	waiters atomic.Int32
	waitMu  sync.Mutex // one Wait at a time drives the poller
	poller  stream.Poller
	park    *parkedOn                // of the last Wait that parked; guarded by waitMu
	parked  atomic.Pointer[parkedOn] // while Wait parks on it
	parks   atomic.Bool              // the last Wait did
	spared  atomic.Bool              // the next poll takes what is here: Arm was called, and Wait looks at the socket
	ready   [16]stream.Event
	ends    <-chan struct{} // of the context whose end wakes the poller; guarded by mu, as is unwatch
	unwatch func() bool
	askMu   sync.Mutex // guards asked
	asked   [driveAtOnce]stream.Event

	some  atomic.Bool   // completions, or an overrun, wait in the ring: a poll of none takes no lock
	looks atomic.Uint32 // at few QPs
	next  atomic.Uint32 // the quiet one among them that is looked at
	turn  atomic.Uint32 // polls that found some, to look at the sockets now and then although completions wait
}

// attached are the QPs of a CQ.
type attached struct {
	list []*qp
	tags map[uint64]*qp // by what the poller calls their sockets
}

func (a *attached) with(q *qp) *attached {
	n := &attached{append(slices.Clone(a.list), q), map[uint64]*qp{}}
	return n.tag()
}

func (a *attached) without(q *qp) *attached {
	n := &attached{slices.DeleteFunc(slices.Clone(a.list), func(x *qp) bool { return x == q }), map[uint64]*qp{}}
	return n.tag()
}

func (a *attached) tag() *attached {
	for _, q := range a.list {
		a.tags[uint64(q.num)] = q
	}
	return a
}

// cqTag says what taking a completion out of the ring frees.
type cqTag struct {
	member uint32 // place in members; noMember for receives
	upto   uint32 // send queue index up to which the QP's places are free
}

const noMember = ^uint32(0)

// NewCQ makes a completion queue.
func (d *Device) NewCQ(depth int) (rdma.CQ, error) {
	if depth < 1 || depth > maxCQE {
		return nil, &rdma.OpError{Op: "create cq", Object: fmt.Sprintf("depth %d", depth), Err: rdma.ErrInvalid}
	}
	size := 1
	for size < depth {
		size <<= 1
	}
	p, err := d.stack.NewPoller()
	if err != nil {
		return nil, &rdma.OpError{Op: "create cq", Err: err}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		p.Close()
		return nil, &rdma.OpError{Op: "create cq", Err: rdma.ErrClosed}
	}
	d.cqs++
	c := &cq{dev: d, ring: make([]rdma.WC, size), tags: make([]cqTag, size), depth: uint32(depth), poller: p}
	c.qps.Store(&attached{})
	return c, nil
}

// attach and detach keep the list of QPs whose progress this CQ drives.
func (c *cq) attach(q *qp) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return rdma.ErrClosed
	}
	c.users++
	if a := c.qps.Load(); !slices.Contains(a.list, q) {
		c.qps.Store(a.with(q))
		c.wake() // it may be parked on the socket of another one
	}
	if c == q.send && !slices.Contains(c.members, q) { // once, also when it is the receive CQ too
		i := slices.Index(c.members, nil)
		if i < 0 {
			i = len(c.members)
			c.members = append(c.members, nil)
		}
		c.members[i] = q
		q.member = uint32(i)
	}
	return nil
}

func (c *cq) detach(q *qp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	if c == q.send && c.members[q.member] == q {
		c.members[q.member] = nil
		for i := range c.tags { // completions that are still pollable free nothing any more
			if c.tags[i].member == q.member {
				c.tags[i].member = noMember
			}
		}
	}
	c.qps.Store(c.qps.Load().without(q))
}

// push adds a completion. The caller holds c.mu.
func (c *cq) push(wc *rdma.WC, solicited bool, tag cqTag) {
	if c.tail-c.head >= c.depth {
		if !c.overrun {
			c.overrun = true
			c.some.Store(true)
			c.fired = true
			c.dev.raise(rdma.EventCQError, 0, 0)
			c.wake()
		}
		return
	}
	c.ring[c.tail&uint32(len(c.ring)-1)] = *wc
	c.tags[c.tail&uint32(len(c.ring)-1)] = tag
	if c.tail++; !c.some.Load() {
		c.some.Store(true)
	}
	if c.armed == notifyNone {
		return
	}
	if c.armed == notifyAny || solicited || wc.Status != rdma.StatusSuccess {
		c.armed = notifyNone
		c.fired = true
		if c.asleep {
			c.wake()
		}
	}
}

func (c *cq) wake() {
	if c.waiters.Load() > 0 {
		c.rouse()
	}
}

func (c *cq) drain(dst []rdma.WC) (int, error) {
	if !c.some.Load() {
		return 0, nil
	}
	c.mu.Lock()
	n := 0
	free := cqTag{member: noMember} // one store for a run of completions of one QP
	for n < len(dst) && c.head != c.tail {
		i := c.head & uint32(len(c.ring)-1)
		dst[n] = c.ring[i]
		if t := c.tags[i]; t.member != noMember {
			if t.member != free.member {
				c.release(free)
			}
			free = t
		}
		c.head++
		n++
	}
	c.release(free)
	var err error
	if c.overrun && n == 0 {
		err = rdma.ErrCQOverrun
	}
	if c.head == c.tail && !c.overrun {
		c.some.Store(false)
	}
	c.mu.Unlock()
	return n, err
}

// release frees send queue places: a place is taken until its completion, or a
// later one, was polled (ibv_post_send(3)), so that a queue that is never polled
// fills up before its CQ overruns.
func (c *cq) release(t cqTag) {
	if t.member != noMember {
		c.members[t.member].freed.Store(t.upto)
	}
}

// askFrom is how many QPs a CQ has from which one question to the poller is cheaper
// than a look at each socket. Each is a system call: the answer costs a
// look at every socket that has something.
const askFrom = 4

// drive makes progress on every QP of the CQ where there is any to make.
//
// Once Wait was used the sockets are in the poller, and it is asked which of them have
// something. Nothing is lost to that, as it reports a state and no change: octets that
// nobody has read are reported to every question and to every sleep, until they are.
// All else that moves a QP on goes through the socket, too (room for octets that wait
// is asked for while some do), or through a post, which moves it itself. A QP whose
// socket the poller does not have is looked at.
func (c *cq) drive() {
	a := c.qps.Load()
	if c.dev.receiver != nil {
		for _, q := range a.list {
			q.active()
		}
		c.dev.receiver.await()
		return
	}
	few := len(a.list) <= lookMost
	if few && (len(a.list) < askFrom || !c.waited.Load() || warm(a.list) < askFrom) {
		c.look(a.list)
		return
	} else if !c.waited.Load() {
		for _, q := range a.list {
			q.poll()
		}
		return
	}
	alone := c.waiters.Load() == 0
	for _, q := range a.list {
		if alone {
			q.active() // it is looked after, though its socket is not touched
		}
		if !q.polledBy(c) {
			q.poll()
		} else if few {
			q.countIdle() // else none would ever be quiet, and each poll a question
		}
	}
	c.ask(len(a.list))
}

// ask makes progress on those of some QPs whose sockets the poller has something of.
func (c *cq) ask(qps int) {
	if !c.askMu.TryLock() {
		return // another goroutine is asking, and drives what it is told
	}
	defer c.askMu.Unlock()
	ready := &c.asked
	for asked := 0; asked < qps; asked += len(ready) { // a flood on some ends no loop
		n := c.poller.Ready(ready[:])
		c.driveReady(ready[:n])
		if n < len(ready) {
			return
		}
	}
}

// driveAtOnce is how many sockets one question names; the poller names others to the
// next.
const driveAtOnce = 16

// driveReady makes progress on the QPs whose sockets were reported.
func (c *cq) driveReady(ready []stream.Event) {
	tags := c.qps.Load().tags
	for i := range ready {
		if q := tags[ready[i].Tag]; q != nil {
			q.poll()
			if ready[i].Bits&stream.Writable != 0 {
				q.watchRoom() // else room that nobody needs is reported for ever
			}
		}
	}
}

// driveEvery is how many polls in a row may be served from completions that
// are already here before the sockets are looked at again. A sender always has
// local completions waiting, and must still notice what its peer sends.
const driveEvery = 8

// Poll moves completions into dst and drives the QPs of this CQ.
func (c *cq) Poll(dst []rdma.WC) (int, error) {
	if c.spared.Load() && c.spared.Swap(false) {
		return c.drain(dst) // the Wait that follows looks at the socket
	}
	if c.some.Load() && c.turn.Add(1)%driveEvery != 0 {
		if n, err := c.drain(dst); n > 0 || err != nil {
			return n, err
		}
	}
	c.drive()
	return c.drain(dst)
}

// Close frees the queue.
func (c *cq) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	if c.users > 0 {
		c.mu.Unlock()
		return &rdma.OpError{Op: "close cq", Err: rdma.ErrBusy}
	}
	c.closed = true
	c.unwatchEnd()
	c.mu.Unlock()
	c.rouse()
	c.waitMu.Lock() // no Wait is inside the poller any more, and none enters
	c.poller.Close()
	c.waitMu.Unlock()
	c.dev.mu.Lock()
	c.dev.cqs--
	c.dev.mu.Unlock()
	return nil
}
