package memdev

import (
	"time"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

var clockBase = time.Now()

// Volley takes steps of a ping-pong with the device's own post and poll.
func (q *qp) Volley(vs []rdma.Volley, dst []rdma.WC) (n int, err error) {
	if q.sendCQ != q.recvCQ || q.srq != nil || len(dst) == 0 {
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
	var watched []byte
	if v.Until == rdma.UntilByte {
		watched = rdma.BufferAt(v.Watch, 1)
	}
	if v.HasAsk {
		v.Start = int64(time.Since(clockBase))
		if _, err := q.PostSend(unsafe.Slice(&v.Ask, 1)); err != nil {
			return 0, err
		}
		v.HasAsk = false
	}
	reply := true
	for look := uint32(0); look < v.Looks && n < len(dst) && !v.Met; look++ {
		if v.Until == rdma.UntilByte && rdma.LoadByte(watched, 0) != v.Was {
			v.Met = true
			break
		}
		first := n
		k, err := q.sendCQ.Poll(dst[n:])
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
		v.Took = int64(time.Since(clockBase)) - v.Start
		return n, nil
	case !reply:
		return n, nil
	}
	if _, err = q.PostSend(unsafe.Slice(&v.Answer, 1)); err == nil {
		v.HasAnswer = false
	}
	return n, err
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
