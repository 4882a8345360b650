package daemon

import (
	"encoding/binary"
	"net"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/internal/procs"
	"github.com/rdmaperf/rdmaperf/transports/lite"
	"github.com/rdmaperf/rdmaperf/transports/lite/extent"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Client is one goroutine's way to the node of a daemon. Methods with names of [lite.Client]'s have its contract. Bytes
// given to Post lie in the client's place (Alloc); others are copied there.
type Client struct {
	cfg         ClientConfig
	conn        *net.UnixConn
	doorbell    *os.File
	page        page
	space       *extent.Space
	node        int
	addr        string
	interrupted atomic.Bool // Interrupt
	lateSlot    uint32      // slot of a blocking request whose deadline passed; its completion may still write
	lines       chan reply  // answers over the socket
	done        chan struct{}
	ended       atomic.Bool
	closed      bool

	posted, seen uint32
	ops          [depth]posted
	first, next  uint32
	prepared     map[[2]int]bool
	word         uint64 // place of blocking atomics
	bounce       uint64
	bounceRoom   int
	waited       map[uint32]end // ends of blocking requests, by slot
	serial       uint32
	replyAt      uint64 // of blocking calls
	inbox        []Message
	waiting      wait            // of a receive
	receives     map[uint32]room // by slot
}

type room struct {
	at   uint64
	size int // bytes
}

var _ lite.Access = (*Client)(nil)

type posted struct {
	d          lite.Done
	unsignaled bool
	done       bool
}

// Slots of requests: these mark what blocks, the others are a place in ops.
const (
	slotBlocking = 1 << 31
	slotReceive  = 1 << 30
)

// Addr is where other nodes reach the daemon's.
func (c *Client) Addr() string { return c.addr }

// Interrupt ends what the client waits for, now and later, as its deadline would. Any goroutine may call it.
func (c *Client) Interrupt() {
	c.interrupted.Store(true)
	if !c.ended.Load() {
		wakeWord(c.page.word(wordEnded))
	}
}

// ID is the number of the daemon's node.
func (c *Client) ID() int { return c.node }

// Alloc takes n bytes of the client's place.
func (c *Client) Alloc(n int) ([]byte, error) {
	if n < 1 {
		return nil, lite.ErrMemory
	}
	off, err := c.space.Alloc(uint64(n))
	if err != nil {
		return nil, lite.ErrNoSpace
	}
	b := c.page[off : off+uint64(n) : off+uint64(n)]
	clear(b)
	return b, nil
}

func (c *Client) Free(b []byte) error {
	off, ok := c.inside(b)
	if !ok || len(b) == 0 {
		return lite.ErrMemory
	}
	return c.space.Free(off)
}

// Offset is where b lies in the place.
func (c *Client) Offset(b []byte) (uint64, error) {
	off, ok := c.inside(b)
	if !ok {
		return 0, lite.ErrMemory
	}
	return off, nil
}

func (c *Client) inside(b []byte) (uint64, bool) {
	if len(b) == 0 {
		return dataAt, true
	}
	off := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(unsafe.Pointer(unsafe.SliceData(c.page))))
	if off < dataAt || off > uint64(len(c.page)) || uint64(len(b)) > uint64(len(c.page))-off {
		return 0, false
	}
	return off, true
}

// push writes one request. rdma.ErrQueueFull: the ring has no place.
func (c *Client) push(r *request) error {
	if c.ended.Load() {
		return lite.ErrClosed
	}
	if c.posted-c.page.word(wordTaken).Load() >= depth {
		return rdma.ErrQueueFull
	}
	at := requestsAt + int(c.posted%depth)*requestLen
	r.put(c.page[at : at+requestLen])
	c.posted++
	return nil
}

func (c *Client) publish() {
	c.page.word(wordPosted).Store(c.posted)
	if c.cfg.Cross || c.page.word(wordIdle).Load() != 0 {
		c.ring()
	}
}

func (c *Client) ring() {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	_, _ = c.doorbell.Write(b[:]) // a counter that is full has rung
}

func (c *Client) pollRing() int {
	ended := c.page.word(wordEnded).Load()
	n := ended - c.seen
	if n == 0 {
		return 0
	}
	if n > depth {
		c.ended.Store(true) // no daemon of ours
		return 0
	}
	for range n {
		at := endsAt + int(c.seen%depth)*endLen
		var d end
		d.get(c.page[at : at+endLen])
		c.seen++
		c.take(&d)
	}
	c.page.word(wordSeen).Store(c.seen)
	return int(n)
}

func (c *Client) take(d *end) {
	switch {
	case d.slot&slotBlocking != 0:
		c.waited[d.slot] = *d
	case d.slot&slotReceive != 0:
		c.received(d)
	default:
		p := &c.ops[d.slot%depth]
		p.d.Status, p.done = rdma.Status(d.status), true
		if d.code != 0 && p.d.Status == rdma.StatusSuccess {
			p.d.Status = rdma.StatusLocQPOpErr
		}
	}
}

func (c *Client) Pending() int { return int(c.next - c.first) }

// Sleep follows a Poll that found nothing: it yields, or with ClientConfig.Cross sleeps, for 100 ms at most.
func (c *Client) Sleep() { c.wait(&wait{turns: 63}) }

// Used is how much of its place the client uses, bytes: rings and what was allocated.
func (c *Client) Used() int { return len(c.page) - int(c.space.Left()) }

// wait follows a poll that found nothing. It is false at the deadline.
func (c *Client) wait(w *wait) bool {
	if w.turns++; !c.cfg.Cross && w.turns%64 != 0 {
		return !c.ended.Load()
	}
	now := time.Now()
	if w.start.IsZero() {
		w.start = now
	}
	if c.ended.Load() || c.interrupted.Load() || now.Sub(w.start) > c.cfg.Timeout {
		return false
	}
	if !c.cfg.Cross {
		procs.Yield()
		return true
	}
	asleep, ended := c.page.word(wordAsleep), c.page.word(wordEnded)
	asleep.Store(1)
	if was := ended.Load(); was == c.seen {
		sleepWord(ended, was, 100*time.Millisecond)
	}
	asleep.Store(0)
	return true
}

type wait struct {
	turns int
	start time.Time
}

func (c *Client) late() error {
	if c.ended.Load() {
		return lite.ErrClosed
	}
	return lite.ErrTimeout
}

func (c *Client) run(r *request) (end, error) {
	c.serial++
	r.slot = slotBlocking | c.serial&^(slotBlocking|slotReceive)
	var w wait
	for c.lateSlot != 0 { // it writes where this one does
		c.pollRing()
		if _, ok := c.waited[c.lateSlot]; ok {
			delete(c.waited, c.lateSlot)
			c.lateSlot = 0
		} else if !c.wait(&w) {
			return end{}, c.late()
		}
	}
	if err := c.pushWait(r, &w); err != nil {
		return end{}, err
	}
	c.publish()
	for {
		c.pollRing()
		if d, ok := c.waited[r.slot]; ok {
			delete(c.waited, r.slot)
			if d.code != 0 {
				return d, lite.Code(d.code)
			}
			if st := rdma.Status(d.status); st != rdma.StatusSuccess {
				return d, &rdma.StatusError{WC: rdma.WC{Status: st}}
			}
			return d, nil
		}
		if !c.wait(&w) {
			c.lateSlot = r.slot
			return end{}, c.late()
		}
	}
}

func (c *Client) pushWait(r *request, w *wait) error {
	for {
		err := c.push(r)
		if err != rdma.ErrQueueFull {
			return err
		}
		c.publish()
		if c.pollRing() == 0 && !c.wait(w) {
			return c.late()
		}
	}
}

// slack is how far unsignaled operations may exceed the depth: a daemon completes them later than a queue pair would.
const slack = 16

func (c *Client) start(r *request, fence bool, p posted) error {
	most := uint32(c.cfg.Depth)
	if p.unsignaled {
		most += slack
	}
	if c.next-c.first >= most {
		return rdma.ErrQueueFull
	}
	if fence {
		r.flags |= flagFence
	}
	r.slot = c.next % depth
	err := c.push(r)
	if err == nil {
		c.ops[r.slot] = p
		c.next++
	}
	return err
}

func (c *Client) Post(ops []lite.Op) (n int, err error) {
	for n < len(ops) {
		o := &ops[n]
		if o.Kind > lite.OpCmpSwap {
			err = rdma.ErrNotSupported
			break
		}
		r := request{kind: kind(o.Kind), handle: uint64(o.Handle), off: o.Off, local: o.Local, add: o.Add, swap: o.Swap,
			len: o.Len}
		if err = c.start(&r, o.Fence, posted{d: lite.Done{Slot: o.Slot, Len: o.Len, Kind: o.Kind},
			unsignaled: o.Unsignaled}); err != nil {
			break
		}
		n++
	}
	if n > 0 {
		c.publish()
	}
	return n, err
}

// PostMessage starts a one-way message of size bytes of the place to a port that Prepare was called for. It ends as
// Done of the kind lite.OpMessage.
func (c *Client) PostMessage(node, port int, tag uint32, local uint64, size, slot uint32, unsignaled,
	fence bool) error {
	r := request{kind: kindSend, handle: uint64(tag), local: local, len: size, node: int32(node), port: uint8(port)}
	err := c.start(&r, fence, posted{d: lite.Done{Slot: slot, Len: size, Kind: lite.OpMessage}, unsignaled: unsignaled})
	if err == nil {
		c.publish()
	}
	return err
}

func (c *Client) Poll(dst []lite.Done) (n int, err error) {
	if c.first == c.next {
		return 0, nil
	}
	c.pollRing()
	for n < len(dst) && c.first != c.next {
		p := &c.ops[c.first%depth]
		if !p.done {
			if !c.ended.Load() {
				break
			}
			p.d.Status = rdma.StatusWRFlushErr
		}
		if !p.unsignaled || p.d.Status != rdma.StatusSuccess {
			dst[n] = p.d
			n++
		}
		p.done = false
		c.first++
	}
	return n, nil
}
