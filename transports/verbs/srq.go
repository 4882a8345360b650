//go:build cgo && linux

package verbs

// #cgo noescape vb_post_srq
// #cgo nocallback vb_post_srq
// #include "shim.h"
import "C"

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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
