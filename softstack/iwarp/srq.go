package iwarp

import (
	"fmt"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// recvRing holds posted receives in order. The owner's lock guards it.
type recvRing struct {
	ring       []rdma.RecvWR
	depth      uint32
	head, tail uint32
}

func newRecvRing(depth int) recvRing {
	return recvRing{ring: make([]rdma.RecvWR, powerOfTwo(depth)), depth: uint32(depth)}
}

func (r *recvRing) len() uint32 { return r.tail - r.head }

func (r *recvRing) post(wrs []rdma.RecvWR) (int, error) {
	for i := range wrs {
		if wrs[i].NumSGE > rdma.MaxSGE {
			return i, rdma.ErrInvalid
		}
		if r.len() >= r.depth {
			return i, rdma.ErrQueueFull
		}
		r.ring[r.tail&uint32(len(r.ring)-1)] = wrs[i]
		r.tail++
	}
	return len(wrs), nil
}

func (r *recvRing) first() *rdma.RecvWR {
	if r.head == r.tail {
		return nil
	}
	return &r.ring[r.head&uint32(len(r.ring)-1)]
}

// srq is a receive queue shared by the QPs of one protection domain.
type srq struct {
	dev *Device
	pd  rdma.PD

	mu     sync.Mutex
	r      recvRing
	limit  uint32
	users  int
	closed bool
}

// NewSRQ makes a shared receive queue.
func (d *Device) NewSRQ(cfg rdma.SRQConfig) (rdma.SRQ, error) {
	fail := func(err error) (rdma.SRQ, error) {
		return nil, &rdma.OpError{Op: "create srq", Object: fmt.Sprintf("depth %d", cfg.Depth), Err: err}
	}
	if cfg.Depth < 1 || cfg.Depth > maxSRQWR {
		return fail(rdma.ErrInvalid)
	}
	if err := d.usePD(cfg.PD, 1); err != nil {
		return fail(err)
	}
	d.mu.Lock()
	d.srqs++
	d.mu.Unlock()
	return &srq{dev: d, pd: cfg.PD, r: newRecvRing(cfg.Depth)}, nil
}

func (s *srq) PostRecv(wrs []rdma.RecvWR) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, rdma.ErrClosed
	}
	return s.r.post(wrs)
}

// take copies the oldest receive into dst and raises the event below the armed limit (ibv_modify_srq(3)).
func (s *srq) take(dst *rdma.RecvWR) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wr := s.r.first()
	if wr == nil {
		return false
	}
	*dst = *wr
	s.r.head++
	s.checkLimit()
	return true
}

func (s *srq) checkLimit() {
	if s.limit > 0 && s.r.len() < s.limit {
		s.limit = 0
		s.dev.raise(rdma.EventSRQLimit, 0, 0)
	}
}

// Arm sets the limit. When fewer receives are already there, the event is raised at once.
func (s *srq) Arm(limit int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if limit < 0 || uint32(limit) > s.r.depth {
		return rdma.ErrInvalid
	}
	s.limit = uint32(limit)
	s.checkLimit()
	return nil
}

func (s *srq) use(by int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if by > 0 && s.closed {
		return rdma.ErrClosed
	}
	s.users += by
	return nil
}

// Close frees the queue; receives still in it are dropped without completion, as ibv_destroy_srq(3) does.
func (s *srq) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	if s.users > 0 {
		return &rdma.OpError{Op: "close srq", Err: rdma.ErrBusy}
	}
	s.closed = true
	s.dev.usePD(s.pd, -1)
	s.dev.mu.Lock()
	s.dev.srqs--
	s.dev.mu.Unlock()
	return nil
}
