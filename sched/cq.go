package sched

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// cq translates completions where the device below put them; its ring has those found while nobody polls.
type cq struct {
	dev   *device
	below rdma.CQ
	depth int

	// mu guards the rest and the QPs that send into this queue. It is held from a poll below until the completions are
	// translated, because that goes by their order.
	mu    sync.Mutex
	qps   []*qp
	last  int // place in qps of the completion before
	polls uint32
	found [64]rdma.WC

	wcs         []completion // ring
	first, many int
	posted      bool  // something was posted for a QP of this queue
	blocked     int   // QPs of which a send waits until the peer gives back
	takers      int   // QPs that may take cut sends
	creditsDue  []*qp // of those, the ones that have something to tell their peers
	armed       notice
	fired       bool
	spareLeft   int         // of cqSpare
	extras      map[*qp]int // completions beyond the user's that a QP may have
}

type completion struct {
	wc   rdma.WC
	from *qp
	free int
}

type notice uint8

const (
	noNotice notice = iota
	onSolicited
	onAny
)

// NewCQ makes a completion queue. The one below is larger, for marks and slices.
func (d *device) NewCQ(depth int) (rdma.CQ, error) {
	if depth < 1 || depth > d.caps.MaxCQE {
		return nil, &rdma.OpError{Op: "create cq", Object: "depth " + strconv.Itoa(depth), Err: rdma.ErrInvalid}
	}
	below, err := d.below.NewCQ(2*depth + cqSpare)
	if err != nil {
		return nil, err
	}
	c := &cq{dev: d, below: below, depth: depth, wcs: make([]completion, depth+1), spareLeft: cqSpare,
		extras: map[*qp]int{}}
	return c, nil
}

func (c *cq) attach(q *qp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.qps = append(c.qps, q)
	if q.recv == c && q.mailbox != nil {
		c.takers++
	}
	if q.send == c {
		more := min(maxMarks+2-minCQExtra, c.spareLeft)
		c.spareLeft -= more
		c.extras[q] = minCQExtra + more
	}
}

func (c *cq) detach(q *qp) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.qps = slices.DeleteFunc(c.qps, func(x *qp) bool { return x == q })
	if q.recv == c && q.mailbox != nil {
		c.takers--
		c.creditsDue = slices.DeleteFunc(c.creditsDue, func(x *qp) bool { return x == q })
	}
	if n, ok := c.extras[q]; ok {
		c.spareLeft += n - minCQExtra
		delete(c.extras, q)
	}
}

// find is the QP that a completion belongs to; nil for one that is closed, whose completions were all taken then.
func (c *cq) find(num uint32) *qp {
	if c.last < len(c.qps) && c.qps[c.last].num == num {
		return c.qps[c.last]
	}
	for i, q := range c.qps {
		if q.num == num {
			c.last = i
			return q
		}
	}
	return nil
}

// Poll moves completions into dst and posts what they make room for.
func (c *cq) Poll(dst []rdma.WC) (n int, err error) {
	c.mu.Lock()
	c.polls++
	if c.blocked > 0 {
		c.unblockSends()
	}
	switch {
	case len(dst) == 0: // it drives the device below all the same
		_, err = c.gather()
	case c.many > 0:
		n = c.take(dst)
	}
	for n < len(dst) && err == nil {
		var k int
		c.posted = false
		if k, err = c.below.Poll(dst[n:]); k == 0 {
			break
		}
		n += c.translate(dst[n:n+k], dst[n:n+k])
		if c.many > 0 {
			n += c.take(dst[n:])
		}
		// To go on until the user has something would keep his thread for the whole of a bulk request.
		if n > 0 || c.posted {
			break
		}
	}
	if n == 0 && c.polls%lookEvery == 0 {
		c.watchState()
	}
	creditsDue := len(c.creditsDue) > 0
	c.mu.Unlock()
	if creditsDue {
		c.notices()
	}
	return n, err
}

// lookEvery polls lie between two looks at connections with work held back: a system call on some devices.
const lookEvery = 1024

func (c *cq) gather() (int, error) {
	if c.blocked > 0 {
		c.unblockSends()
	}
	k, err := c.below.Poll(c.found[:])
	if k > 0 {
		c.translate(c.found[:k], nil)
	}
	return k, err
}

// drain is gather for those who do not hold mu.
func (c *cq) drain() int {
	c.mu.Lock()
	k, _ := c.gather()
	c.mu.Unlock()
	c.notices()
	return k
}

func (c *cq) take(dst []rdma.WC) (n int) {
	for n < len(dst) && c.many > 0 {
		t := &c.wcs[c.first]
		dst[n] = t.wc
		if t.from != nil {
			t.from.freed += uint64(t.free)
			t.from = nil
		}
		if c.first++; c.first == len(c.wcs) {
			c.first = 0
		}
		c.many--
		n++
	}
	return n
}

// push puts a completion into the ring, which grows when it must: a poll of the device below brings what is there.
func (c *cq) push(wc *rdma.WC, from *qp, free int) {
	if c.many == len(c.wcs) {
		more := make([]completion, 2*len(c.wcs))
		n := copy(more, c.wcs[c.first:])
		copy(more[n:], c.wcs[:c.first])
		c.wcs, c.first = more, 0
	}
	c.wcs[(c.first+c.many)%len(c.wcs)] = completion{*wc, from, free}
	c.many++
	c.notify(wc.Status != rdma.StatusSuccess)
}

func (c *cq) notify(failed bool) {
	if c.armed == onAny || c.armed == onSolicited && failed {
		c.armed, c.fired = noNotice, true
	}
}

// translate turns completions below into the user's, in order: into dst, which may be wcs, or behind what waits in the
// ring. It posts what they made room for.
func (c *cq) translate(wcs, dst []rdma.WC) (n int) {
	var q *qp
	failed := false
	for i := range wcs {
		wc := &wcs[i]
		good := wc.Status == rdma.StatusSuccess
		free := 0
		if good && wc.Opcode.IsRecv() {
			if c.takers > 0 {
				c.arrived(wc)
				good = wc.Status == rdma.StatusSuccess
			}
		} else {
			if q == nil || q.num != wc.QPNum {
				q.resume()
				q = c.find(wc.QPNum)
			}
			switch {
			case q == nil || q.send != c:
			case good:
				if !q.succeeded(wc) {
					continue
				}
				free, q.uncovered = q.uncovered+1, 0
			case q.erred(wc):
				continue
			}
		}
		if len(dst) == 0 || c.many > 0 {
			c.push(wc, q, free)
			continue
		}
		failed = failed || !good
		if n != i || &dst[0] != &wcs[0] {
			dst[n] = *wc
		}
		n++
		if free > 0 {
			q.freed += uint64(free)
		}
	}
	q.resume()
	if n > 0 {
		c.notify(failed)
	}
	return n
}

// resume posts what completions made room for, or flushes it behind the last of a connection; q may be nil.
func (q *qp) resume() {
	switch {
	case q == nil:
		return
	case q.failed && q.head == q.tail: // the device may have refused the marker, too
		q.flushUnposted()
	case q.waiting > 0:
		q.dispatch()
	default:
		q.win.publish()
	}
	if q.cuts() && !q.sendingCredits {
		q.noticeNow()
	}
}

// watchState looks whether connections with work held back are over: nothing under way may tell.
func (c *cq) watchState() {
	for _, q := range c.qps {
		if q.send == c {
			q.look()
		}
	}
}

func (q *qp) look() {
	if q.waiting > 0 && !q.failed && !q.closed && q.below.State() == rdma.QPErr {
		q.fail()
	}
}

// Arm asks for one event. What is there already raises none.
func (c *cq) Arm(solicitedOnly bool) error {
	f := c.dev.caps.Features
	if !f.Has(rdma.FeatEvents) || solicitedOnly && !f.Has(rdma.FeatSolicited) {
		return rdma.ErrNotSupported
	}
	for {
		c.mu.Lock()
		k, err := c.gather()
		c.mu.Unlock()
		if err != nil {
			return err
		}
		if k == 0 {
			break
		}
	}
	want := onAny
	if solicitedOnly {
		want = onSolicited
		// Which message is solicited only the device below knows. What it raised for the tier's own use is over.
		over, cancel := context.WithCancel(context.Background())
		cancel()
		for c.below.Wait(over) == nil {
		}
		if err := c.below.Arm(true); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = max(c.armed, want) // IBTA C11-31, C11-32: the stronger request wins
	return nil
}

// solicitedLook bounds a sleep of Wait for solicited completions beside work that other completions make room for.
const solicitedLook = time.Millisecond

// Wait blocks until the armed event fires, and keeps posting what waits.
func (c *cq) Wait(ctx context.Context) error {
	if !c.dev.caps.Features.Has(rdma.FeatEvents) {
		return rdma.ErrNotSupported
	}
	for {
		if c.gone() {
			return nil
		}
		c.mu.Lock()
		c.polls++ // somebody is here
		solicited := c.armed == onSolicited
		c.mu.Unlock()
		if !solicited {
			if err := c.below.Arm(false); err != nil {
				return err
			}
		}
		for c.drain() > 0 { // what came before it was armed below
			if c.gone() {
				return nil
			}
		}
		if c.gone() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		sleep, cancel := ctx, context.CancelFunc(func() {})
		if c.holds(solicited) {
			sleep, cancel = context.WithTimeout(ctx, solicitedLook)
		}
		err := c.below.Wait(sleep)
		cancel()
		switch {
		case err == nil && solicited:
			c.mu.Lock()
			if c.armed == onSolicited {
				c.armed, c.fired = noNotice, true
			}
			c.mu.Unlock()
		case err != nil && (ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded)):
			if c.gone() {
				return nil
			}
			return err
		}
	}
}

func (c *cq) gone() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := c.fired
	c.fired = false
	return was
}

// holds reports whether a QP of this queue has work held back that goes on without an event.
func (c *cq) holds(solicited bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blocked > 0 || !solicited {
		return c.blocked > 0
	}
	for _, q := range c.qps {
		if q.send == c && q.waiting > 0 {
			return true
		}
	}
	return false
}

// Close fails with rdma.ErrBusy while a QP uses the queue.
func (c *cq) Close() error { return c.below.Close() }
