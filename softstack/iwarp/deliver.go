package iwarp

import (
	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// deliver ends the segment in rx.seg, which is placed and checked. ulpdu is nil after direct placement.
func (q *qp) deliver(ulpdu []byte) {
	s := &q.rx.seg
	if q.phase != phaseOpen {
		return
	}
	if !q.tx.start.MaySend() {
		q.tx.start, _ = q.tx.start.Next(mpa.EventFPDU)
	}
	switch s.op {
	case rdmap.OpWrite:
		q.rx.write.add(len(s.dst), s.last)
	case rdmap.OpReadResp:
		q.deliverResponse()
	case rdmap.OpReadReq:
		q.deliverRequest(ulpdu)
	case rdmap.OpAtomicReq:
		q.deliverAtomic(ulpdu)
	case rdmap.OpAtomicResp:
		q.deliverAtomicResponse(ulpdu)
	case rdmap.OpImmediate, rdmap.OpImmediateSE:
		q.deliverImmediate(ulpdu)
	case rdmap.OpTerminate:
		q.deliverTerminate(ulpdu[ddp.UntaggedLen:])
	default:
		q.deliverSend(ulpdu)
	}
}

func (q *qp) deliverSend(ulpdu []byte) {
	s := &q.rx.seg
	if s.dst != nil {
		q.msgLen += uint32(len(s.dst))
	} else if ulpdu != nil {
		q.msgLen += uint32(len(ulpdu) - ddp.UntaggedLen)
	}
	if !s.last {
		return
	}
	wc := rdma.WC{ID: q.cur.ID, QPNum: q.num, Opcode: rdma.WCRecv, ByteLen: q.msgLen}
	if s.op.Invalidates() {
		if code := q.remoteInvalidate(s.inv); code != 0 {
			q.terminate(code, ulpdu)
			return
		}
		wc.Flags, wc.InvKey = rdma.WithInv, s.inv
	}
	q.curUsed, q.msgLen = false, 0
	q.rx.write.ended = false
	q.pushRecv(&wc, s.op.Solicited())
}

// remoteInvalidate revokes a key whose owner allowed it, of the stream's own domain (RFC 5040 §8.1.1).
func (q *qp) remoteInvalidate(stag uint32) rdmap.TermCode {
	m := q.find(stag)
	switch {
	case m == nil:
		return rdmap.TermProtSTag
	case m.pd != q.cfg.PD:
		return rdmap.TermProtNotAssociated
	case !m.access.Has(rdma.RemoteInvalidate):
		return rdmap.TermProtCannotInv
	}
	m.invalidate()
	return 0
}

func (q *qp) deliverResponse() {
	s := &q.rx.seg
	i := q.reads.first()
	if q.rtrRead && i == rtrIndex {
		q.rtrRead = false
		q.reads.head++
		return
	}
	e := &q.sq[i&uint32(len(q.sq)-1)]
	e.end += uint64(len(s.dst))
	if s.last {
		e.done = true
		q.reads.head++
	}
}

// deliverRequest checks a read request's source (RFC 5040 §7.2) and queues the response.
func (q *qp) deliverRequest(ulpdu []byte) {
	r := rdmap.GetReadRequest(ulpdu[ddp.UntaggedLen:])
	if r.Size > 0 {
		if _, code := q.source(r.SrcSTag, r.SrcTO, r.Size, rdma.RemoteRead); code != 0 {
			q.terminate(code, ulpdu)
			return
		}
	}
	in := &q.req[q.irq.tail&uint32(len(q.irq.ring)-1)]
	in.atomic, in.read = false, r
	q.asked()
}

// inbound is a read or atomic of the peer that waits for its response.
type inbound struct {
	atomic bool
	read   rdmap.ReadRequest
	op     rdmap.AtomicRequest
}

func (q *qp) asked() {
	q.irq.push(0)
	q.rx.write.ended = false
}

// source is the registration that a request of the peer means, with the checks of RFC 5040 §7.2 in its order.
func (q *qp) source(stag uint32, to uint64, n uint32, want rdma.Access) (*mr, rdmap.TermCode) {
	m := q.find(stag)
	if m == nil {
		return nil, rdmap.TermProtSTag
	}
	if m.pd != q.cfg.PD {
		return nil, rdmap.TermProtNotAssociated
	}
	switch ddp.CheckBounds(to, int(n), m.base, uint64(len(m.buf))) {
	case ddp.ErrTaggedWrap:
		return nil, rdmap.TermProtWrap
	case ddp.ErrTaggedBounds:
		return nil, rdmap.TermProtBounds
	}
	if !m.access.Has(want) || !q.admits(want) {
		return nil, rdmap.TermProtAccess
	}
	return m, 0
}

// deliverTerminate ends the QP on the peer's word (RFC 5040 §5.4): no answer, everything outstanding is over.
func (q *qp) deliverTerminate(payload []byte) {
	t, _, err := rdmap.ParseTerminate(payload)
	q.why = rdmap.TermUnspecified
	if err == nil {
		q.why = t.Code
	}
	event := rdma.EventQPRequest
	if protection(q.why) {
		event = rdma.EventQPAccess
	}
	q.dev.raise(event, q.num, vendor(q.why))
	q.retire()
	if err == nil && (t.R || quotesAtomic(&t)) && q.reads.len() > 0 && !q.rtrRead {
		// A Terminate that quotes a Read Request or Atomic Request refuses the oldest.
		i := q.reads.first()
		q.releaseMemory()
		q.flushSends(i)
		status := rdma.StatusRemOpErr
		switch {
		case protection(q.why):
			status = rdma.StatusRemAccessErr
		case !t.R:
			status = rdma.StatusRemInvReqErr
		}
		q.complete(&q.sq[i&uint32(len(q.sq)-1)], status)
		q.sqHead = i + 1
	}
	q.shut()
}

func protection(c rdmap.TermCode) bool {
	return c.Layer() == rdmap.LayerRDMAP && c.EType() == 1 || c.Layer() == rdmap.LayerDDP &&
		c.EType() == ddp.ETypeTagged
}

func (q *qp) pushRecv(wc *rdma.WC, solicited bool) {
	q.recv.mu.Lock()
	q.recv.push(wc, solicited, cqTag{member: noMember})
	overrun := q.recv.overrun
	q.recv.mu.Unlock()
	if overrun {
		q.overran()
	}
}
