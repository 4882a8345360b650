package direct

import (
	"context"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// errEnded: the connection is over and everything that was outstanding has been polled.
var errEnded error = &rdma.OpError{Op: "poll", Object: "session", Err: fmt.Errorf("%w: the queue pair is in ERR",
	rdma.ErrState)}

// Poll takes completions, first those that Wait found. A failed op comes as a Done with its status, unsignaled or not.
// When the connection is over and has nothing more to tell, an error says so.
func (s *session) Poll(dst []transports.Done) (int, error) {
	n := 0
	if s.next < s.carry {
		n = s.translate(dst)
	}
	if n == len(dst) && n > 0 {
		return n, nil
	}
	if s.err != nil {
		if n > 0 {
			return n, nil
		}
		return 0, s.err
	}
	// Without room for a Done the call still drives the device, but takes nothing.
	k, err := s.cq.Poll(s.wcs[:min(len(dst)-n, len(s.wcs))])
	if err != nil {
		s.err = err
		return n, nil
	}
	if k == 0 {
		if n == 0 {
			return 0, s.look()
		}
		return n, nil
	}
	s.next, s.carry = 0, k
	s.idle = 0
	return n + s.translate(dst[n:]), nil
}

func (s *session) translate(dst []transports.Done) int {
	n := 0
	for s.next < s.carry && n < len(dst) {
		wc := &s.wcs[s.next]
		s.next++
		kind := idKind(wc.ID)
		if kind == transports.KindRecv {
			s.recvInUse--
		} else if wc.Status == rdma.StatusSuccess {
			s.inUse -= idCover(wc.ID)
			if wc.ID&unsignaledBit != 0 {
				continue
			}
		} else if s.inUse > 0 {
			// After the first failure each request completes for itself; places of those before stay taken.
			s.inUse--
		}
		d := &dst[n]
		*d = transports.Done{Slot: idSlot(wc.ID), Kind: kind, Status: wc.Status}
		if wc.Status == rdma.StatusSuccess {
			d.Len = wc.ByteLen
			if wc.Flags&rdma.WithImm != 0 {
				d.Imm, d.HasImm = wc.Imm, true
			}
		}
		n++
	}
	return n
}

// look checks now and then whether the connection is over: a side that watches memory has nothing outstanding that
// would tell it. Two looks in a row must see ERR, so that completions flushed meanwhile come out first.
func (s *session) look() error {
	s.idle++
	if s.idle < idlePolls {
		return nil
	}
	s.idle = 0
	if s.qp.State() != rdma.QPErr {
		s.dying = false
		return nil
	}
	if !s.dying {
		s.dying = true
		return nil
	}
	s.err = errEnded
	return s.err
}

// Wait blocks until Poll may have something or ctx ends. rdma.ErrState without Config.Events. Arm comes before the
// check, so that a completion either is found by it or raises the event.
func (s *session) Wait(ctx context.Context) error {
	if s.closed {
		return rdma.ErrClosed
	}
	if !s.events {
		return rdma.ErrState
	}
	if s.err != nil || s.next < s.carry {
		return nil
	}
	if err := s.cq.Arm(false); err != nil {
		return err
	}
	k, err := s.cq.Poll(s.wcs)
	if err != nil {
		s.err = err
		return nil
	}
	if k > 0 {
		s.next, s.carry = 0, k
		return nil
	}
	if s.qp.State() == rdma.QPErr && s.recvInUse == 0 && s.inUse == 0 {
		s.idle, s.dying = idlePolls, true // nothing will come: the next Poll may say so
		return nil
	}
	return s.cq.Wait(ctx)
}
