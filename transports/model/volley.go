package model

import (
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Volley takes steps of a ping-pong, timed by the device's clock.
func (q *qp) Volley(vs []rdma.Volley, dst []rdma.WC) (n int, err error) {
	if q.send != q.recv || !q.own || len(dst) == 0 {
		return 0, rdma.ErrInvalid
	}
	for i := range vs {
		v := &vs[i]
		if v.Met = false; v.Until == rdma.UntilByte && rdma.BufferAt(v.Watch, 1) == nil {
			return 0, rdma.ErrInvalid
		}
	}
	if q.State() != rdma.QPRTS {
		return 0, rdma.ErrState
	}
	for i := range vs {
		v := &vs[i]
		k, err := q.volley(v, dst[n:])
		if n += k; err != nil || !v.Met || v.HasAnswer {
			return n, err
		}
	}
	return n, nil
}

func (q *qp) volley(v *rdma.Volley, dst []rdma.WC) (n int, err error) {
	if v.HasAsk {
		v.Start = q.dev.clock.Now()
		if _, err := q.PostSend(unsafe.Slice(&v.Ask, 1)); err != nil {
			return 0, err
		}
		v.HasAsk = false
	}
	reply := true
	for look := uint32(0); look < v.Looks && n < len(dst) && !v.Met; look++ {
		if v.Until == rdma.UntilByte && q.seen(v) {
			v.Met = true
			break
		}
		first := n
		k, err := q.send.Poll(dst[n:])
		if n += k; err != nil {
			return n, err
		}
		for i := range dst[first:n] {
			wc := &dst[first+i]
			recv := wc.Opcode.IsRecv()
			switch {
			case wc.Status != rdma.StatusSuccess:
				v.Met = false
				return n, nil
			case v.Until == rdma.UntilSend && !recv:
				v.Met = true
			case v.Until == rdma.UntilRecv && recv:
				reply = !v.Met && answers(v, wc)
				v.Met = true
			}
		}
	}
	switch {
	case !v.Met:
		return n, nil
	case !v.HasAnswer:
		v.Took = q.dev.clock.Now() - v.Start
		return n, nil
	case !reply:
		return n, nil
	}
	if _, err = q.PostSend(unsafe.Slice(&v.Answer, 1)); err == nil {
		v.HasAnswer = false
	}
	return n, err
}

// seen looks at the watched byte. The peer's write is there at once, and the time is
// not: the clock moves to when it came.
func (q *qp) seen(v *rdma.Volley) bool {
	b := rdma.BufferAt(v.Watch, 1)
	if b == nil || rdma.LoadByte(b, 0) == v.Was {
		return false
	}
	world.Lock()
	defer world.Unlock()
	q.dev.clock.Set(max(q.dev.clock.Now(), q.sink))
	return true
}

// answers tells whether the prepared answer is one to what arrived.
func answers(v *rdma.Volley, wc *rdma.WC) bool {
	switch {
	case wc.ID != v.Expect:
		return false
	case wc.Opcode == rdma.WCRecvWriteImm:
		return wc.Imm == v.Answer.Imm
	}
	return uint64(wc.ByteLen) == v.Answer.Len()
}
