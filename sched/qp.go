package sched

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// entryFlags say what a posted request of the device below means.
type entryFlags uint8

const (
	eSignaled    entryFlags = 1 << iota // the device below completes it
	eVisible                            // a user's request that went straight through, and its completion is the user's
	eUser                               // a user's request that went straight through
	eResponds                           // counts against ORD
	eMark                               // carries the oldest mark that is under way
	eDrainMarker                        // posted behind a failure
	eDone                               // ended before one that was posted earlier
	// unsignalled, and so are as many in all as parent says, before one that is plain
	eRun

	// Of a request of the tier's own, which is never in a run.
	eNotice = eRun // tells the peer what the reassembler took
)

// ePlain is a signalled request that went straight through.
const ePlain = eUser | eSignaled | eVisible

// entry is one request posted to the device below.
type entry struct {
	id     uint64 // as posted
	parent int32  // or none; of a run, its length
	flags  entryFlags
}

const none = int32(-1)

// parentFlags say how far a user's request that waits, or waited, has come.
type parentFlags uint16

const (
	pUsed     parentFlags = 1 << iota
	pSignaled             // its success is the user's to see
	pSlices               // may be cut
	pBegun                // some of it was posted
	pIssued               // all of it was posted
	pOrdered              // never overtakes
	pReported             // its completion was given to the user
	pRefused              // the device below would not take a part of it
	pFatal                // and that ended the connection
	pSend                 // a send that may be cut if the peer's ring has room
	pReserved             // a send that has its part of the ring
)

// parent is a user's request that could not go straight through.
type parent struct {
	wr   rdma.SendWR
	seq  uint64 // of the post
	at   int64  // when it was posted, for policies that are timed
	size uint64 // bytes
	off  uint64 // of those, posted
	// of a read in slices, the bytes at its end, which went first; of a send, those at its beginning, which go last
	tail           uint64
	ring           uint32 // of a send in slices, where it begins in the peer's ring
	reservation    int8   // and which part that is
	out            int32  // entries under way
	next           int32  // in its class, or among the free ones
	nextUnsignaled int32  // next unsignalled one of its class
	flags          parentFlags
}

type queue struct{ first, last int32 }

// kept is a completion that waits for earlier unsignalled requests.
type kept struct {
	wc  rdma.WC
	seq uint64
}

// qp is one end of a connection. mu, which is that of the send CQ, guards everything below it.
type qp struct {
	dev     *device
	below   rdma.QP
	num     uint32
	send    *cq
	recv    *cq
	depth   int // the user's
	sigAll  bool
	inline  int
	copies  rdma.Buffer // inline bytes of waiting requests
	pd      rdma.PD
	mailbox *mailbox // nil: sends are not cut

	mu        *sync.Mutex
	closed    bool
	failed    bool // the connection is over; nothing more is posted
	draining  bool // SQD is wanted when what was begun is posted
	pol       policy
	heads     heads
	posted    uint64 // requests taken from the user
	freed     uint64 // places given back by polls
	uncovered int    // ended without a completion since the last one
	seq       uint64
	nextID    uint64
	verdict   rdma.Status // of a request of our own that failed first

	// Posted to the device below: a ring in its order, [head, tail).
	ring       []entry
	head, tail uint32
	places     int // of the device's send queue
	ord        int
	reads      int // reads and atomics under way

	// Waiting.
	parents    []parent
	free       int32
	class      [Priorities]queue
	ready      classSet // classes with something to post
	waiting    int      // parents not wholly posted
	unsignaled [Priorities]queue
	unended    int // requests in unsignaled
	held       []kept
	ahead      uint64 // the latest post of which something went below

	win    window
	batch  [batchLen]rdma.SendWR
	filled int

	msgs           uint32 // posted below that take a receive
	sendingCredits bool   // a notice is under way

	watched atomic.Bool // in the keeper's list
}

// NewQP makes a queue pair in INIT.
func (d *device) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	fail := func(err error) (rdma.QP, error) { return nil, &rdma.OpError{Op: "create qp", Err: err} }
	send, ok1 := cfg.SendCQ.(*cq)
	recv, ok2 := cfg.RecvCQ.(*cq)
	switch {
	case !ok1 || !ok2 || send.dev != d || recv.dev != d:
		return fail(fmt.Errorf("completion queues of this device are required: %w", rdma.ErrInvalid))
	case cfg.SendDepth < 0 || cfg.SendDepth > d.caps.MaxQPWR || cfg.RecvDepth > d.caps.MaxQPWR:
		return fail(fmt.Errorf("send depth %d, receive depth %d, limit %d: %w", cfg.SendDepth, cfg.RecvDepth,
			d.caps.MaxQPWR, rdma.ErrInvalid))
	case cfg.MaxInline < 0 || cfg.MaxInline > d.caps.MaxInline:
		return fail(fmt.Errorf("%d inline bytes, limit %d: %w", cfg.MaxInline, d.caps.MaxInline, rdma.ErrInvalid))
	}
	depth := max(cfg.SendDepth, 1)
	inner := cfg
	inner.SendCQ, inner.RecvCQ = send.below, recv.below
	inner.SendDepth = depth + hiddenSends
	inner.SigAll = false // the tier signals what the user is to see
	cuts := d.canCut(&cfg)
	if cuts {
		inner.MaxInline = max(cfg.MaxInline, descriptorLen, creditsLen)
	}
	below, err := d.below.NewQP(inner)
	if err != nil {
		return nil, err
	}
	q := &qp{
		dev: d, below: below, num: below.Num(), send: send, recv: recv, mu: &send.mu,
		depth: depth, sigAll: cfg.SigAll, inline: cfg.MaxInline, pd: cfg.PD,
		pol: d.disc.make(&d.cfg), nextID: d.ids, places: inner.SendDepth, free: none,
	}
	if cuts {
		q.mailbox = &mailbox{room: d.cfg.Room}
	}
	if cfg.MaxInline > 0 {
		if q.copies, err = rdma.Alloc(depth * cfg.MaxInline); err != nil {
			below.Close()
			return fail(err)
		}
	}
	q.ring = make([]entry, 1<<bits.Len(uint(q.places-1))) // a power of two
	for c := range Priorities {
		q.class[c], q.unsignaled[c] = queue{none, none}, queue{none, none}
	}
	q.win.init(&d.cfg, d.local)
	send.attach(q)
	if recv != send {
		recv.attach(q)
	}
	return q, nil
}

func (q *qp) Num() uint32 { return q.num }

// State is that of the QP below, but SQD from Drain on.
func (q *qp) State() rdma.QPState {
	s := q.below.State()
	if s == rdma.QPRTS {
		q.mu.Lock()
		if q.draining {
			s = rdma.QPSQD
		}
		q.mu.Unlock()
	}
	return s
}

func (q *qp) Connect(ctx context.Context, addr string, p rdma.ConnParam) (rdma.ConnParam, error) {
	p, offered, err := q.offered(p, true)
	if err != nil {
		return rdma.ConnParam{}, &rdma.OpError{Op: "connect", Object: addr, Err: err}
	}
	got, err := q.below.Connect(ctx, addr, p)
	if err != nil {
		return got, err
	}
	got, peer := met(got)
	q.negotiated(offered, peer)
	q.joined(got.ORD, addr)
	return got, nil
}

func (q *qp) joined(ord int, addr string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ord = ord
	if !q.closed {
		q.win.share.group = q.dev.groups.join(q.dev.cfg.Scope, addr)
	}
	q.win.apart = q.dev.local && ord > 0 && q.dev.caps.Features.Has(rdma.FeatEmptyRead)
	others := 2 // a drain marker and the read that fills ORD
	if q.cuts() {
		others++ // a notice
	}
	q.win.limit = max(min(maxMarks, q.send.extras[q]-others), 1)
	if q.win.apart {
		q.win.limit = max(min(q.win.limit, ord/2), 1)
	}
}

func (q *qp) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if q.mailbox != nil {
		return q.postRecv(wrs)
	}
	return q.below.PostRecv(wrs)
}

// PingPong is not declared: nothing may pass the tier by.
func (q *qp) PingPong([]rdma.PingPongStep, []rdma.WC) (int, error) { return 0, rdma.ErrNotSupported }

// Drain holds what has not begun; the device below drains behind a request that was cut and has.
func (q *qp) Drain() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.draining || q.closed {
		return q.below.Drain() // which says what is wrong with that
	}
	if !q.begun() {
		return q.below.Drain()
	}
	if !q.dev.caps.Features.Has(rdma.FeatSQD) {
		return rdma.ErrNotSupported
	}
	if q.failed || q.below.State() != rdma.QPRTS {
		return rdma.ErrState
	}
	q.draining = true
	return nil
}

// begun reports whether a waiting request was posted in part.
func (q *qp) begun() bool {
	for c := range Priorities {
		if q.ready.has(c) && q.parents[q.class[c].first].flags&pBegun != 0 {
			return true
		}
	}
	return false
}

func (q *qp) Resume() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.draining {
		q.draining = false
	} else if err := q.below.Resume(); err != nil {
		return err
	}
	q.dispatch()
	return nil
}

func (q *qp) Fail() error {
	err := q.below.Fail()
	if err == nil {
		q.mu.Lock()
		q.fail()
		q.mu.Unlock()
	}
	return err
}

// drainPause is how long Disconnect leaves the device alone between two looks.
const drainPause = 50 * time.Microsecond

// Disconnect posts what waits, as far as the peer takes it before ctx ends, and ends the connection.
func (q *qp) Disconnect(ctx context.Context) error {
	for {
		q.mu.Lock()
		idle := q.waiting == 0 || q.failed || q.closed || q.draining || q.below.State() != rdma.QPRTS
		q.mu.Unlock()
		if idle || ctx.Err() != nil {
			break
		}
		if q.send.drain() == 0 {
			time.Sleep(drainPause)
		}
	}
	err := q.below.Disconnect(ctx)
	q.mu.Lock()
	if !q.closed && q.below.State() == rdma.QPErr {
		q.fail()
	}
	q.mu.Unlock()
	return err
}

// Close destroys the QP. What was posted completes through the device below, and behind it what waited.
func (q *qp) Close() error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return nil
	}
	q.mu.Unlock()
	if err := q.below.Close(); err != nil {
		return err
	}
	for q.send.drain() > 0 {
	}
	for q.recv != q.send && q.recv.drain() > 0 {
	}
	if !q.finish() {
		return nil
	}
	q.send.detach(q)
	if q.recv != q.send {
		q.recv.detach(q)
	}
	return errors.Join(q.mailbox.close(), q.copies.Free())
}

func (q *qp) finish() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.closed, q.failed = true, true
	defer q.leave() // behind all that is ended here
	if q.cuts() && q.mailbox.out.blocked {
		q.unblock()
	}
	var unused rdma.WC
	for ; q.head != q.tail; q.head++ { // what is left succeeded in silence
		if e := &q.ring[q.head&uint32(len(q.ring)-1)]; e.flags&eDone == 0 {
			q.ended(e, &unused)
		}
	}
	q.flushUnposted()
	return true
}
