package memdev

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type recvQueue struct {
	slots
	pd    rdma.PD // the domain that the receives' keys must belong to
	ring  []rdma.RecvWR
	head  int
	count int
}

func newRecvQueue(pd rdma.PD, depth int) *recvQueue {
	return &recvQueue{slots: slots{depth: depth}, pd: pd, ring: make([]rdma.RecvWR, depth)}
}

func (r *recvQueue) post(wrs []rdma.RecvWR) (n int, err error) {
	for n < len(wrs) {
		switch {
		case wrs[n].NumSGE > rdma.MaxSGE:
			return n, rdma.ErrInvalid
		case r.used == r.depth:
			return n, rdma.ErrQueueFull
		}
		r.ring[(r.head+r.count)%len(r.ring)] = wrs[n]
		r.count++
		r.used++
		n++
	}
	return n, nil
}

func (r *recvQueue) pop() rdma.RecvWR {
	wr := r.ring[r.head]
	r.head = (r.head + 1) % len(r.ring)
	r.count--
	return wr
}

func (r *recvQueue) swap() {
	second := (r.head + 1) % len(r.ring)
	r.ring[r.head], r.ring[second] = r.ring[second], r.ring[r.head]
}

type srq struct {
	recvQueue
	dev     *Device
	closed  bool
	users   int
	limit   int
	stalled []*qp // requesters that found it empty, oldest first
}

// NewSRQ makes a shared receive queue.
func (d *Device) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	fail := func(err error) (rdma.SRQ, error) {
		return nil, &rdma.OpError{Op: "create srq", Object: fmt.Sprintf("depth %d", cfg.Depth), Err: err}
	}
	d.fab.lock()
	defer d.fab.unlock()
	if err := d.alive(); err != nil {
		return fail(err)
	}
	if cfg.Depth < 1 || cfg.Depth > caps.MaxSRQWR || !d.use(cfg.PD) {
		return fail(rdma.ErrInvalid)
	}
	return &srq{recvQueue: *newRecvQueue(cfg.PD, cfg.Depth), dev: d}, nil
}

// PostRecv takes receives and lets waiting senders go, first come first served.
func (s *srq) PostRecv(wrs []rdma.RecvWR) (n int, err error) {
	f := s.dev.fab
	f.lock()
	defer f.unlock()
	f.drive()
	if s.closed {
		return 0, rdma.ErrClosed
	}
	n, err = s.post(wrs)
	for len(s.stalled) > 0 && s.count > 0 {
		s.stalled[0].retry()
	}
	return n, err
}

// Arm asks for one EventSRQLimit; at once if fewer receives than limit are there.
func (s *srq) Arm(limit int) error {
	s.dev.fab.lock()
	defer s.dev.fab.unlock()
	switch {
	case s.closed:
		return &rdma.OpError{Op: "arm srq", Err: rdma.ErrClosed}
	case limit < 0 || limit > s.depth:
		return &rdma.OpError{Op: "arm srq", Object: fmt.Sprintf("limit %d", limit), Err: rdma.ErrInvalid}
	}
	s.limit = limit
	s.checkLimit()
	return nil
}

func (s *srq) checkLimit() {
	if s.count < s.limit {
		s.limit = 0
		s.dev.raise(rdma.EventSRQLimit, 0)
	}
}

// Close fails with ErrBusy while a QP uses the queue. Receives left in it vanish.
func (s *srq) Close() error {
	s.dev.fab.lock()
	defer s.dev.fab.unlock()
	if s.closed {
		return nil
	}
	if s.users > 0 {
		return &rdma.OpError{Op: "close srq", Err: rdma.ErrBusy}
	}
	s.closed = true
	s.dev.release(s.pd)
	return nil
}
