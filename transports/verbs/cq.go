//go:build cgo && linux

package verbs

// #cgo nocallback vb_post_srq
// #cgo noescape vb_post_srq
// #cgo noescape vb_poll
// #cgo nocallback vb_poll
// #include "shim.h"
import "C"

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type cq struct {
	dev *Device
	id  uint64 // orders the locks of two
	fd  int    // the completion channel's

	mu      sync.Mutex
	c       *C.struct_vb_cq
	kept    []rdma.WC // collected from the device, oldest first, not polled yet
	slow    bool      // any of the following, or kept is not empty
	overrun bool
	closed  bool
	woken   bool                 // there are completions that the device did not make
	held    []*C.struct_vb_queue // of QPs in ERR, with requests that the device was not told of
	users   int

	waiting sleeper
}

// NewCQ makes a completion queue.
func (d *Device) NewCQ(depth int) (rdma.CQ, error) {
	object := fmt.Sprintf("depth %d", depth)
	if depth < 1 || depth > d.caps.MaxCQE {
		return nil, &rdma.OpError{Op: opCreateCQ, Object: object, Err: rdma.ErrInvalid}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, &rdma.OpError{Op: opCreateCQ, Err: rdma.ErrClosed}
	}
	c := &cq{dev: d, id: cqSerial.Add(1)}
	var err error
	if c.waiting, err = newSleeper(); err != nil {
		return nil, failed(opCreateCQ, object, err)
	}
	var rc C.int
	if c.c = C.vb_create_cq(d.ctx, d.table, C.int(depth), &rc); c.c == nil {
		c.waiting.close()
		return nil, failed(opCreateCQ, object, errno(rc))
	}
	c.fd = int(c.c.channel.fd)
	d.cqs[unsafe.Pointer(c.c.cq)] = c
	return c, nil
}

func (d *Device) cqOf(object unsafe.Pointer) *cq {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cqs[object]
}

// Poll moves completions into dst. Those that were kept come first: they are older.
func (c *cq) Poll(dst []rdma.WC) (int, error) {
	if len(dst) == 0 {
		return 0, nil
	}
	c.mu.Lock()
	if c.slow {
		n, err := c.pollSlow(dst)
		c.mu.Unlock()
		return n, err
	}
	n := c.take(dst)
	c.mu.Unlock()
	if n < 0 {
		return 0, errPoll
	}
	return n, nil
}

var errPoll = &rdma.OpError{Op: "poll cq", Err: rdma.ErrCQOverrun}

// take polls the device. The caller holds c.mu.
func (c *cq) take(dst []rdma.WC) int {
	n := int(C.vb_poll(c.c, (*C.struct_vb_wc)(unsafe.Pointer(unsafe.SliceData(dst))), C.int(len(dst))))
	if n > 0 {
		c.note(dst[:n])
	}
	return n
}

func (c *cq) note(wcs []rdma.WC) {
	for i := range wcs {
		if wcs[i].Status == rdma.StatusSuccess {
			continue
		}
		if q := c.dev.qpOf(wcs[i].QPNum); q != nil { // it is in ERR (IBTA 10.3.1.7)
			q.failed()
		}
	}
}

func (c *cq) pollSlow(dst []rdma.WC) (int, error) {
	if c.closed {
		return 0, rdma.ErrClosed
	}
	n := copy(dst, c.kept)
	c.kept = c.kept[n:]
	if len(c.kept) == 0 {
		c.kept = nil
		c.slow = c.overrun || len(c.held) > 0
	}
	if n < len(dst) {
		n += c.takeAll(dst[n:])
	}
	if c.overrun && n == 0 {
		return 0, rdma.ErrCQOverrun
	}
	return n, nil
}

// takeAll polls the device, then completes flushed what is held: only what the device has said already can be older.
func (c *cq) takeAll(dst []rdma.WC) int {
	n := max(0, c.take(dst))
	for _, q := range c.held {
		for n < len(dst) && C.vb_release(q, (*C.struct_vb_wc)(unsafe.Pointer(&dst[n]))) != 0 {
			n++
		}
	}
	return n
}

// hold notes a queue with requests that the device was not told of, or, when it has lapsed, will not complete.
func (c *cq) hold(q *C.struct_vb_queue, lapsed bool) {
	c.mu.Lock()
	if lapsed {
		q.lapsed = 1
	}
	if !slices.Contains(c.held, q) {
		c.held = append(c.held, q)
	}
	c.slow, c.woken = true, true
	c.mu.Unlock()
	c.waiting.wake()
}

// letGo forgets a queue. The caller holds c.mu.
func (c *cq) letGo(q *C.struct_vb_queue) {
	c.held = slices.DeleteFunc(c.held, func(o *C.struct_vb_queue) bool { return o == q })
}

// collect moves what the device has into kept. The caller holds c.mu.
func (c *cq) collect() (n int) {
	var room [64]rdma.WC
	for {
		k := c.takeAll(room[:])
		if k > 0 {
			c.keep(room[:k]...)
			n += k
		}
		if k < len(room) {
			return n
		}
	}
}

func (c *cq) keep(wcs ...rdma.WC) {
	c.kept = append(c.kept, wcs...)
	c.slow = true
}

// lost marks the queue as overrun: the device dropped completions.
func (c *cq) lost() {
	c.mu.Lock()
	c.overrun, c.slow = true, true
	c.mu.Unlock()
	c.waiting.wake()
}

func (c *cq) use(by int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed && by > 0 {
		return fmt.Errorf("completion queue: %w", rdma.ErrClosed)
	}
	c.users += by
	return nil
}

// Close frees the queue. Waiters get ErrClosed.
func (c *cq) Close() error {
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		return nil
	case c.users > 0:
		c.mu.Unlock()
		return &rdma.OpError{Op: "close cq", Err: rdma.ErrBusy}
	}
	c.closed, c.slow = true, true
	c.mu.Unlock()
	c.waiting.close() // no Wait uses the channel any more
	c.dev.mu.Lock()
	delete(c.dev.cqs, unsafe.Pointer(c.c.cq))
	c.dev.mu.Unlock()
	if rc := C.vb_destroy_cq(c.c); rc != 0 {
		return &rdma.OpError{Op: "close cq", Err: errno(rc)}
	}
	return nil
}

type srq struct {
	dev *Device
	pd  *domain

	mu     sync.Mutex
	c      *C.struct_vb_srq
	depth  int
	users  int
	closed bool
}

// NewSRQ makes a shared receive queue.
func (d *Device) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	fail := func(err error) (rdma.SRQ, error) {
		return nil, &rdma.OpError{Op: "create srq", Object: fmt.Sprintf("depth %d", cfg.Depth), Err: err}
	}
	if !d.caps.Features.Has(rdma.FeatSRQ) {
		return fail(rdma.ErrNotSupported)
	}
	if cfg.Depth < 1 || cfg.Depth > d.caps.MaxSRQWR {
		return fail(fmt.Errorf("want 1 to %d: %w", d.caps.MaxSRQWR, rdma.ErrInvalid))
	}
	p, err := d.usePD(cfg.PD)
	if err != nil {
		return fail(err)
	}
	d.mu.Lock() // creation is serialised for the table
	var rc C.int
	// libsiw refuses a receive without elements: one of length 0, which is the same, is posted in its place.
	c := C.vb_create_srq(p.pd, d.table, C.uint32_t(cfg.Depth), C.uint32_t(d.caps.MaxSGE), flag(d.iwarp), &rc)
	d.mu.Unlock()
	if c == nil {
		d.leavePD(p)
		return fail(errno(rc))
	}
	d.count(1)
	return &srq{dev: d, pd: p, c: c, depth: cfg.Depth}, nil
}

func (s *srq) PostRecv(wrs []rdma.RecvWR) (int, error) {
	n, err := checkRecv(wrs, s.dev.caps.MaxSGE)
	if n == 0 {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, rdma.ErrClosed
	}
	p := C.vb_post_srq(s.c, (*C.struct_vb_recv)(unsafe.Pointer(unsafe.SliceData(wrs))), C.int(n))
	if p.err != 0 {
		err = postError(p.err)
	}
	return int(p.n), err
}

// Arm asks for one EventSRQLimit; 0 disarms.
func (s *srq) Arm(limit int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return &rdma.OpError{Op: "arm srq", Err: rdma.ErrClosed}
	case limit < 0 || limit > s.depth:
		return &rdma.OpError{Op: "arm srq", Object: fmt.Sprintf("limit %d", limit), Err: rdma.ErrInvalid}
	}
	if rc := C.vb_srq_limit(s.c, C.uint32_t(limit)); rc != 0 {
		return &rdma.OpError{Op: "arm srq", Object: fmt.Sprintf("limit %d", limit), Err: errno(rc)}
	}
	return nil
}

func (s *srq) use(by int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed && by > 0 {
		return fmt.Errorf("shared receive queue: %w", rdma.ErrClosed)
	}
	s.users += by
	return nil
}

// Close frees the queue. Receives left in it vanish.
func (s *srq) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil
	case s.users > 0:
		return &rdma.OpError{Op: "close srq", Err: rdma.ErrBusy}
	}
	s.dev.mu.Lock()
	rc := C.vb_destroy_srq(s.c, s.dev.table)
	s.dev.mu.Unlock()
	if rc != 0 {
		return &rdma.OpError{Op: "close srq", Err: errno(rc)}
	}
	s.closed = true
	s.dev.leavePD(s.pd)
	s.dev.count(-1)
	return nil
}
