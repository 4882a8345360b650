package direct

import (
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Post hands ops to the device in order: each run of receives and each run of
// sends is one call. Errors: rdma.ErrQueueFull, rdma.ErrInvalid (range, length,
// alignment, inline size), rdma.ErrNotSupported (kind or flag), and the device's.
func (s *session) Post(ops []transports.Op) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	done := 0
	for done < len(ops) {
		var n int
		var err error
		if ops[done].Kind == transports.KindRecv {
			n, err = s.postRecvs(ops[done:])
		} else {
			n, err = s.postSends(ops[done:])
		}
		done += n
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

func (s *session) postRecvs(ops []transports.Op) (int, error) {
	ops = ops[:min(len(ops), len(s.recvs))]
	k := 0
	var stop error
	for k < len(ops) && ops[k].Kind == transports.KindRecv {
		op := &ops[k]
		if !within(op.Local, op.Len, uint64(len(s.win))) {
			stop = rdma.ErrInvalid
			break
		}
		if s.recvInUse+k == s.recvDepth {
			stop = rdma.ErrQueueFull
			break
		}
		wr := &s.recvs[k]
		wr.ID = makeID(transports.KindRecv, op.Slot)
		wr.NumSGE = s.sge(&wr.SGE[0], op.Local, op.Len)
		k++
	}
	if k == 0 {
		return 0, stop
	}
	n, err := s.qp.PostRecv(s.recvs[:k])
	s.recvInUse += n
	if err != nil {
		return n, err
	}
	return n, stop
}

func (s *session) postSends(ops []transports.Op) (int, error) {
	ops = ops[:min(len(ops), len(s.sends))]
	k := 0
	var stop error
	unsignaled := s.unsignaled
	for k < len(ops) && ops[k].Kind != transports.KindRecv {
		op := &ops[k]
		if stop = s.check(op); stop != nil {
			break
		}
		if s.inUse+k == s.depth {
			stop = rdma.ErrQueueFull
			break
		}
		unsignaled = s.fill(&s.sends[k], op, unsignaled)
		k++
	}
	if k == 0 {
		return 0, stop
	}
	n, err := s.qp.PostSend(s.sends[:k])
	s.inUse += n
	if n < k {
		unsignaled = s.unsignaled
		for i := range n {
			unsignaled = unsignaledAfter(&s.sends[i], unsignaled)
		}
	}
	s.unsignaled = unsignaled
	if err != nil {
		return n, err
	}
	return n, stop
}

// fill takes how many unsignaled requests stand before op, and returns that count for the next one.
func (s *session) fill(wr *rdma.SendWR, op *transports.Op, unsignaled int) int {
	info := &s.ops[op.Kind]
	id := makeID(op.Kind, op.Slot)
	flags := rdma.Signaled
	if op.Flags&transports.Unsignaled != 0 {
		id |= unsignaledBit
		// Nothing but unsignaled requests would never free a place (IBTA 10.7.3.1); Poll keeps this completion.
		if unsignaled+1 < s.signalEvery {
			flags = 0
		}
	}
	if op.Flags&transports.Inline != 0 {
		flags |= rdma.Inline
	}
	if op.Flags&transports.Fence != 0 {
		flags |= rdma.Fence
	}
	wr.Op, wr.Flags, wr.Priority, wr.Imm = info.op, flags, op.Priority, op.Imm
	wr.RemoteAddr = s.peer.addr + op.Remote
	wr.CompareAdd, wr.Swap = op.Add, op.Swap
	n := op.Len
	if info.atomic {
		n = 8
	}
	wr.NumSGE = s.sge(&wr.SGE[0], op.Local, n)
	wr.ID = id | uint64(unsignaled+1)<<coverShift
	return unsignaledAfter(wr, unsignaled)
}

func unsignaledAfter(wr *rdma.SendWR, unsignaled int) int {
	if wr.Flags&rdma.Signaled != 0 {
		return 0
	}
	return unsignaled + 1
}

// sge returns how many elements the request has: an empty element would mean 2^31 bytes to some devices.
func (s *session) sge(e *rdma.SGE, off uint64, n uint32) uint8 {
	e.Addr, e.Len = s.base+off, n
	if n == 0 {
		return 0
	}
	return 1
}

func (s *session) check(op *transports.Op) error {
	if int(op.Kind) >= len(s.ops) || !s.ops[op.Kind].ok || op.Flags&s.refuse != 0 {
		return rdma.ErrNotSupported
	}
	info := &s.ops[op.Kind]
	n := op.Len
	if info.atomic {
		// RFC 7306 §5 and every InfiniBand device; the peer would answer with the end of the connection.
		if n != 8 && n != 0 || op.Remote&7 != 0 {
			return rdma.ErrInvalid
		}
		n = 8
	}
	if op.Kind == transports.KindSendImm && n > 0 && s.immAlone {
		return rdma.ErrNotSupported
	}
	if uint64(n) > s.maxMsg || !within(op.Local, n, uint64(len(s.win))) ||
		info.remote && !within(op.Remote, n, s.peer.len) {
		return rdma.ErrInvalid
	}
	if op.Flags&transports.Inline != 0 && (info.op.Responds() || n > s.maxInline) {
		return rdma.ErrInvalid // send and write only (ibv_post_send(3))
	}
	return nil
}

func within(off uint64, n uint32, size uint64) bool { return off <= size && uint64(n) <= size-off }

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
