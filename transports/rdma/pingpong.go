package rdma

import "unsafe"

// Until is what a PingPongStep waits for.
type Until uint8

const (
	UntilSend Until = iota // a completion of the send queue
	UntilRecv              // a completion of the receive queue
	UntilByte              // the byte at Watch is not Was any more
)

// PingPongStep is one side's step of a ping-pong: post a request, look until something happens, and answer it. Several
// are taken in one call. Whoever asks learns when it happened, and whoever answers does so before it knows itself, so
// that no figure carries the way into the provider and out of it, nor the caches that the way cost. It holds no
// pointer.
type PingPongStep struct {
	Ask    SendWR // posted first, with HasAsk
	Answer SendWR // posted when the wait has ended, with HasAnswer
	// Expect is the ID of the receive that UntilRecv answers. Something else arrived when it is another one, when its
	// length is not that of the answer, or its immediate that of an answer with immediate, or when one of both is a
	// write with immediate and the other is not: then nothing is answered.
	Expect uint64
	Watch  uint64 // UntilByte: an address in a registration
	// Took is the ns from before Ask was posted until the wait ended, and nothing on the side that answers. Start is
	// the provider's reading of its own clock, kept from the call that posted Ask to the one that ends the wait.
	Start, Took int64
	Looks       uint32 // how often it looks at the CQ at most, and often at the byte in between
	Until       Until
	Was         byte
	HasAsk      bool // cleared when it is posted
	HasAnswer   bool // cleared when it is posted
	Met         bool // result: the wait ended
}

// Steps takes steps of a ping-pong with post and poll of q, for providers whose QP.PingPong
// has no other way. Both queues of q complete into cq. The clock is now, in ns; arrived,
// if not nil, is called where the byte at Watch was seen to change.
func Steps(q QP, cq CQ, steps []PingPongStep, dst []WC, now func() int64, arrived func()) (n int, err error) {
	for i := range steps {
		v := &steps[i]
		if v.Met = false; v.Until == UntilByte && BufferAt(v.Watch, 1) == nil {
			return 0, ErrInvalid
		}
	}
	if q.State() != QPRTS {
		return 0, ErrState
	}
	for i := range steps {
		v := &steps[i]
		k, err := step(q, cq, v, dst[n:], now, arrived)
		if n += k; err != nil || !v.Met || v.HasAnswer {
			return n, err
		}
	}
	return n, nil
}

func step(q QP, cq CQ, v *PingPongStep, dst []WC, now func() int64, arrived func()) (n int, err error) {
	var watched []byte
	if v.Until == UntilByte {
		watched = BufferAt(v.Watch, 1)
	}
	if v.HasAsk {
		v.Start = now()
		if _, err := q.PostSend(unsafe.Slice(&v.Ask, 1)); err != nil {
			return 0, err
		}
		v.HasAsk = false
	}
	reply := true
	for look := uint32(0); look < v.Looks && n < len(dst) && !v.Met; look++ {
		if v.Until == UntilByte && LoadByte(watched, 0) != v.Was {
			if v.Met = true; arrived != nil {
				arrived()
			}
			break
		}
		first := n
		k, err := cq.Poll(dst[n:])
		if n += k; err != nil {
			return n, err
		}
		for i := range dst[first:n] {
			wc := &dst[first+i]
			recv := wc.Opcode.IsRecv()
			switch {
			case wc.Status != StatusSuccess:
				v.Met = false
				return n, nil
			case v.Until == UntilSend && !recv:
				v.Met = true
			case v.Until == UntilRecv && recv:
				reply = !v.Met && v.answers(wc)
				v.Met = true
			}
		}
	}
	switch {
	case !v.Met:
		return n, nil
	case !v.HasAnswer:
		v.Took = now() - v.Start
		return n, nil
	case !reply:
		return n, nil
	}
	if _, err = q.PostSend(unsafe.Slice(&v.Answer, 1)); err == nil {
		v.HasAnswer = false
	}
	return n, err
}

func (v *PingPongStep) answers(wc *WC) bool {
	switch {
	case wc.ID != v.Expect:
		return false
	case wc.Opcode == WCRecvWriteImm || v.Answer.Op == OpWriteImm:
		return wc.Opcode == WCRecvWriteImm && v.Answer.Op == OpWriteImm && wc.Imm == v.Answer.Imm
	case v.Answer.Op == OpSendImm && (wc.Flags&WithImm == 0 || wc.Imm != v.Answer.Imm):
		return false
	}
	return uint64(wc.ByteLen) == v.Answer.Len()
}
