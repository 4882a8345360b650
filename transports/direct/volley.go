package direct

import (
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Volley takes one step of a ping-pong in one call to the device. An answer for
// which the send queue has no room is not prepared: the call then only polls.
func (s *session) Volley(v *transports.Volley, dst []transports.Done) (int, error) {
	if !s.volleys {
		return 0, rdma.ErrNotSupported
	}
	if s.err != nil || s.next < s.carry || s.closed {
		return 0, rdma.ErrState
	}
	w := &s.volley
	dark := s.dark
	if v.HasAsk {
		if err := s.check(&v.Ask); err != nil {
			return 0, err
		}
		if s.inUse == s.depth {
			return 0, rdma.ErrQueueFull
		}
		dark = s.fill(&w.Ask, &v.Ask, dark)
	}
	if v.HasAnswer {
		if err := s.check(&v.Answer); err != nil {
			return 0, err
		}
		if s.inUse == s.depth {
			v.Met = false
			return s.Poll(dst)
		}
		s.fill(&w.Answer, &v.Answer, dark)
	}
	if v.Until == rdma.UntilByte && v.Watch >= uint64(len(s.win)) {
		return 0, rdma.ErrInvalid
	}
	w.HasAsk, w.HasAnswer = v.HasAsk, v.HasAnswer
	w.Expect, w.Watch, w.Was = makeID(transports.KindRecv, v.Slot), s.base+v.Watch, v.Was
	w.Until, w.Looks = v.Until, v.Looks
	k, err := s.qp.Volley(w, s.wcs[:min(len(dst), len(s.wcs))])
	if v.HasAsk && !w.HasAsk {
		s.inUse++
		s.dark = dark
	}
	if v.HasAnswer && !w.HasAnswer {
		s.inUse++
		s.dark = darkAfter(&w.Answer, s.dark)
	}
	v.HasAsk, v.HasAnswer, v.Met, v.Took = w.HasAsk, w.HasAnswer, w.Met, w.Took
	s.next, s.carry = 0, k
	n := s.translate(dst)
	if n > 0 || v.Met || err != nil {
		s.idle = 0
		return n, err
	}
	s.idle += int(v.Looks)
	return 0, s.look()
}
