package direct

import (
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// PingPong takes steps of a ping-pong in one call to the device. An answer for which the send queue has no room is not
// prepared: the call then ends with the step before, and with the first one it only polls.
func (s *session) PingPong(vs []transports.PingPongStep, dst []transports.Done) (int, error) {
	if !s.pingPong {
		return 0, rdma.ErrNotSupported
	}
	if s.err != nil || s.next < s.carry || s.closed {
		return 0, rdma.ErrState
	}
	vs = vs[:min(len(vs), pingPongBatch)]
	room, unsignaled, steps := s.depth-s.inUse, s.unsignaled, 0
	for i := range vs {
		v, w := &vs[i], &s.steps[i]
		if v.Met = false; v.Until == rdma.UntilByte && v.Watch >= uint64(len(s.win)) {
			return 0, rdma.ErrInvalid
		}
		for _, op := range [...]struct {
			there bool
			op    *transports.Op
			wr    *rdma.SendWR
		}{{v.HasAsk, &v.Ask, &w.Ask}, {v.HasAnswer, &v.Answer, &w.Answer}} {
			if !op.there {
				continue
			}
			if err := s.check(op.op); err != nil {
				return 0, err
			}
			room--
			unsignaled = s.fill(op.wr, op.op, unsignaled)
		}
		if room < 0 {
			break
		}
		w.HasAsk, w.HasAnswer = v.HasAsk, v.HasAnswer
		w.Expect, w.Watch, w.Was = makeID(transports.KindRecv, v.Slot), s.base+v.Watch, v.Was
		w.Until, w.Looks, w.Start, w.Met = v.Until, v.Looks, v.Start, false
		steps++
	}
	if steps == 0 {
		if len(vs) > 0 && vs[0].HasAsk {
			return 0, rdma.ErrQueueFull
		}
		return s.Poll(dst)
	}
	k, err := s.qp.PingPong(s.steps[:steps], s.wcs[:min(len(dst), len(s.wcs))])
	met := false
	for i := range s.steps[:steps] {
		v, w := &vs[i], &s.steps[i]
		s.posted(v.HasAsk && !w.HasAsk, &w.Ask)
		s.posted(v.HasAnswer && !w.HasAnswer, &w.Answer)
		v.HasAsk, v.HasAnswer, v.Met, v.Took, v.Start = w.HasAsk, w.HasAnswer, w.Met, w.Took, w.Start
		met = met || v.Met
	}
	s.next, s.carry = 0, k
	n := s.translate(dst)
	if n > 0 || met || err != nil {
		s.idle = 0
		return n, err
	}
	s.idle += int(vs[0].Looks)
	return 0, s.look()
}

// posted keeps the books of a request that a PingPong posted, if it did.
func (s *session) posted(yes bool, wr *rdma.SendWR) {
	if yes {
		s.inUse++
		s.unsignaled = unsignaledAfter(wr, s.unsignaled)
	}
}
