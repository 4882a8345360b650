package memdev

import (
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	allFlags  = rdma.Signaled | rdma.Fence | rdma.Solicited | rdma.Inline
	inlineOps = rdma.OpSet(
		1<<rdma.OpSend | 1<<rdma.OpSendInv | 1<<rdma.OpSendImm | 1<<rdma.OpWrite | 1<<rdma.OpWriteImm)
	atomicSize = 8
)

// PostSend takes work and executes what can be executed. Nothing moves before the whole slice has been looked at.
func (q *qp) PostSend(wrs []rdma.SendWR) (n int, err error) {
	f := q.dev.fab
	f.lock()
	defer f.unlock()
	f.drive()
	switch {
	case q.closed:
		return 0, rdma.ErrClosed
	case !q.state.CanPostSend():
		return 0, rdma.ErrState // IBTA C10-96
	}
	for n < len(wrs) {
		if err = q.enqueue(&wrs[n]); err != nil {
			break
		}
		n++
	}
	if q.state == rdma.QPErr {
		q.flush()
	} else {
		q.run()
	}
	return n, err
}

// enqueue checks what ibv_post_send(3) checks at once; keys and memory are looked at on execution.
func (q *qp) enqueue(wr *rdma.SendWR) error {
	if err := q.check(wr); err != nil {
		return err
	}
	if q.sq.used == q.sq.depth {
		return rdma.ErrQueueFull
	}
	if wr.Flags&rdma.Inline != 0 && !q.copyInline(wr) {
		return rdma.ErrInvalid
	}
	*q.sq.at(q.sq.tail) = sendEntry{wr: *wr}
	q.sq.tail++
	q.sq.used++
	return nil
}

func (q *qp) check(wr *rdma.SendWR) error {
	if int(wr.Op) >= rdma.NumOpcodes || wr.Flags&^allFlags != 0 || wr.NumSGE > rdma.MaxSGE {
		return rdma.ErrInvalid
	}
	size := wr.Len()
	switch {
	case size > caps.MaxMsg,
		wr.Flags&rdma.Inline != 0 && (!inlineOps.Has(wr.Op) || size > uint64(q.maxInline)),
		wr.Op.IsAtomic() && (wr.NumSGE != 1 || size != atomicSize),
		wr.Op == rdma.OpLocalInv && wr.NumSGE != 0:
		return rdma.ErrInvalid
	}
	return nil
}

// copyInline checks no key, but the bytes must lie in mapped buffers: an address alone is not trusted.
func (q *qp) copyInline(wr *rdma.SendWR) bool {
	room := q.inlineAt(q.sq.tail, q.maxInline)
	for i := range wr.SGE[:wr.NumSGE] {
		s := &wr.SGE[i]
		if s.Len == 0 {
			continue
		}
		b := rdma.BufferAt(s.Addr, int(s.Len))
		if b == nil {
			return false
		}
		room = room[copy(room, b):]
	}
	return true
}

func (q *qp) inlineAt(i uint64, n int) []byte {
	off := int(i%uint64(len(q.sq.ring))) * q.maxInline
	return q.sq.inline[off : off+n]
}

// PostRecv takes receives, and lets the peer's waiting sends go.
func (q *qp) PostRecv(wrs []rdma.RecvWR) (n int, err error) {
	f := q.dev.fab
	f.lock()
	defer f.unlock()
	f.drive()
	switch {
	case q.closed:
		return 0, rdma.ErrClosed
	case q.srq != nil:
		return 0, rdma.ErrInvalid
	case !q.state.CanPostRecv():
		return 0, rdma.ErrState // IBTA C10-97.2.1
	}
	n, err = q.rq.post(wrs)
	if q.state == rdma.QPErr {
		q.flush()
	} else if n > 0 && q.peer != nil && q.peer.stalled {
		q.peer.retry()
	}
	return n, err
}

var clockBase = time.Now()

func clock() int64 { return int64(time.Since(clockBase)) }

// PingPong takes steps of a ping-pong with the device's own post and poll.
func (q *qp) PingPong(steps []rdma.PingPongStep, dst []rdma.WC) (n int, err error) {
	if q.sendCQ != q.recvCQ || q.srq != nil || len(dst) == 0 {
		return 0, rdma.ErrInvalid
	}
	return rdma.Steps(q, q.sendCQ, steps, dst, clock, nil)
}

// rawQP is a qp that is led through its states by hand, and its own peer.
type rawQP struct{ *qp }

// NewRawQP makes a queue pair in RESET.
func (d *Device) NewRawQP(cfg rdma.QPConfig) (rdma.RawQP, error) {
	d.fab.lock()
	defer d.fab.unlock()
	q, err := d.newQP(cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "create qp", Object: d.host, Err: err}
	}
	q.state = rdma.QPReset
	return rawQP{q}, nil
}

const rawReads = 4

// Modify moves the QP. Nothing is changed by what is refused (man ibv_modify_qp, NOTES).
func (q rawQP) Modify(to rdma.QPState, given rdma.QPAttrs) error {
	return q.command("modify", func() error {
		needs, takes := rdma.AttrsOf(q.state, to)
		switch {
		case !rdma.CanTransition(q.state, to):
			return fmt.Errorf("%s to %s: %w", q.state, to, rdma.ErrInvalid)
		case needs&^given != 0:
			return fmt.Errorf("%s to %s without %s: %w", q.state, to, needs&^given, rdma.ErrInvalid)
		case given&^(needs|takes) != 0:
			return fmt.Errorf("%s to %s with %s: %w", q.state, to, given&^(needs|takes), rdma.ErrInvalid)
		}
		switch to {
		case rdma.QPErr:
			q.enterErr()
			return nil
		case rdma.QPReset:
			q.forget()
		case rdma.QPRTR:
			q.peer, q.ird = q.qp, rawReads
		case rdma.QPRTS:
			q.ord, q.rnr = rawReads, rnrForever
		}
		q.to(to)
		q.run()
		return nil
	})
}

// forget discards what is outstanding; completions that were not polled stay (IBTA 10.3.1.1).
func (q *qp) forget() {
	q.unstall()
	q.sq.used -= int(q.sq.tail-q.sq.head) + q.sq.unsignaled
	q.sq.unsignaled, q.sq.pending = 0, 0
	q.sq.head, q.sq.next = q.sq.tail, q.sq.tail
	if q.srq == nil {
		q.rq.used -= q.rq.count + q.rq.unsignaled
		q.rq.unsignaled, q.rq.count = 0, 0
	}
	q.peer, q.ird, q.ord, q.rnr = nil, 0, 0, 0
	q.drained = false
}
