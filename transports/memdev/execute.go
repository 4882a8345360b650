package memdev

import (
	"encoding/binary"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type next uint8

const (
	finished    next = iota
	noReceive        // the peer must post a receive first
	answerLater      // executed at the peer; Config.ReadDelay holds the answer
)

// execute checks in the order of IBTA 9.7.4. A refusal has no effect but ERR and the requester's status.
func (q *qp) execute(e *sendEntry) (rdma.Status, next) {
	if q.dev.fab.faults.hit(FaultDie, q.dev) {
		q.dev.kill()
		return rdma.StatusFatalErr, finished
	}
	wr := &e.wr
	if wr.Op == rdma.OpLocalInv {
		return q.localInv(wr), finished
	}
	if wr.Op.Responds() {
		return q.request(e)
	}
	src, ok := q.gather(wr)
	if !ok {
		return rdma.StatusLocProtErr, finished
	}
	if q.gone() {
		return rdma.StatusRetryExcErr, finished
	}
	switch wr.Op {
	case rdma.OpWrite:
		return q.peer.takeWrite(wr, &src), finished
	case rdma.OpWriteImm:
		return q.peer.takeWriteImm(wr, &src)
	default:
		return q.peer.takeSend(wr, &src)
	}
}

func (q *qp) gone() bool { return q.peer.state == rdma.QPErr }

// gather resolves the bytes that a send or write carries. Empty elements are not looked at: their keys mean nothing.
func (q *qp) gather(wr *rdma.SendWR) (s span, ok bool) {
	if wr.Flags&rdma.Inline != 0 {
		s.add(q.inlineAt(q.sq.next, int(wr.Len())))
		return s, true
	}
	return q.dev.resolve(q.pd, wr.SGE[:wr.NumSGE], wr.Len(), 0)
}

func (d *Device) resolve(pd rdma.PD, list []rdma.SGE, n uint64, need rdma.Access) (s span, ok bool) {
	for i := 0; i < len(list) && n > 0; i++ {
		size := min(n, uint64(list[i].Len))
		if size == 0 {
			continue
		}
		mem := d.local(pd, &list[i], size, need)
		if mem == nil {
			return s, false
		}
		s.add(mem)
		n -= size
	}
	return s, true
}

func (q *qp) localInv(wr *rdma.SendWR) rdma.Status {
	m := q.dev.rkeys[wr.InvKey]
	if m == nil {
		m = q.dev.lkeys[wr.InvKey]
	}
	if m == nil || m.pd != q.pd {
		return rdma.StatusLocProtErr
	}
	m.revoke()
	return rdma.StatusSuccess
}

// request checks the sink first: one whose answer has nowhere to go must not change the peer.
func (q *qp) request(e *sendEntry) (rdma.Status, next) {
	wr := &e.wr
	if q.ord == 0 {
		return rdma.StatusLocQPOpErr, finished
	}
	sink, ok := q.dev.resolve(q.pd, wr.SGE[:wr.NumSGE], wr.Len(), rdma.LocalWrite)
	if !ok {
		return rdma.StatusLocProtErr, finished
	}
	if q.gone() {
		return rdma.StatusRetryExcErr, finished
	}
	p := q.peer
	if q.sq.pending >= p.ird { // more than was negotiated (IBTA 9.7.4.1.3)
		return p.refuseRequest(), finished
	}
	var src span
	if wr.Op.IsAtomic() {
		if st := p.takeAtomic(e); st != rdma.StatusSuccess {
			return st, finished
		}
	} else if src, ok = p.target(wr, rdma.RemoteRead); !ok {
		return p.refuseAccess(), finished
	}
	if q.dev.fab.cfg.ReadDelay > 0 {
		return rdma.StatusSuccess, answerLater
	}
	q.deliverAnswer(e, &sink, &src)
	return rdma.StatusSuccess, finished
}

// answer checks keys again: they may have been revoked meanwhile, and then no byte may be touched.
func (q *qp) answer(e *sendEntry) rdma.Status {
	wr := &e.wr
	sink, ok := q.dev.resolve(q.pd, wr.SGE[:wr.NumSGE], wr.Len(), rdma.LocalWrite)
	if !ok {
		return rdma.StatusLocProtErr
	}
	if q.gone() {
		return rdma.StatusRetryExcErr
	}
	var src span
	if wr.Op == rdma.OpRead {
		if src, ok = q.peer.target(wr, rdma.RemoteRead); !ok {
			return q.peer.refuseAccess()
		}
	}
	q.deliverAnswer(e, &sink, &src)
	e.phase = done
	return rdma.StatusSuccess
}

func (q *qp) deliverAnswer(e *sendEntry, sink, src *span) {
	if e.wr.Op.IsAtomic() {
		binary.NativeEndian.PutUint64(sink.part[0], e.old)
		return
	}
	q.corrupt(sink, place(sink, src))
}

// target is the memory of a read or write at the responder. A length of zero checks no key (IBTA C9-88).
func (p *qp) target(wr *rdma.SendWR, need rdma.Access) (s span, ok bool) {
	n := wr.Len()
	if n == 0 {
		return s, true
	}
	return p.remote(wr.RKey, wr.RemoteAddr, n, need)
}

func (p *qp) takeWrite(wr *rdma.SendWR, src *span) rdma.Status {
	dst, ok := p.target(wr, rdma.RemoteWrite)
	if !ok {
		p.leak(wr, src)
		return p.refuseAccess()
	}
	p.corrupt(&dst, place(&dst, src))
	return rdma.StatusSuccess
}

// takeWriteImm places nothing before a receive is there to report it.
func (p *qp) takeWriteImm(wr *rdma.SendWR, src *span) (rdma.Status, next) {
	dst, ok := p.target(wr, rdma.RemoteWrite)
	if !ok {
		p.leak(wr, src)
		return p.refuseAccess(), finished
	}
	if p.rq.count == 0 {
		return rdma.StatusSuccess, noReceive
	}
	p.corrupt(&dst, place(&dst, src))
	recv := p.takeReceive()
	p.arrived(wr, &recv, rdma.WCRecvWriteImm)
	return rdma.StatusSuccess, finished
}

func (p *qp) takeSend(wr *rdma.SendWR, src *span) (rdma.Status, next) {
	if p.rq.count == 0 {
		return rdma.StatusSuccess, noReceive
	}
	var doomed *mr
	if wr.Op == rdma.OpSendInv {
		// Only a registration of the QP's domain that opted in may be revoked from outside (RFC 5040 §8.1.1).
		doomed = p.dev.rkeys[wr.InvKey]
		if doomed == nil || doomed.pd != p.pd || !doomed.access.Has(rdma.RemoteInvalidate) {
			if doomed == nil || !p.dev.fab.faults.hit(FaultSkipAccessCheck, p.dev) {
				return p.refuseAccess(), finished
			}
		}
	}
	recv := p.takeReceive()
	if uint64(src.size) > recv.Len() {
		p.failReceive(&recv, rdma.StatusLocLenErr)
		return rdma.StatusRemInvReqErr, finished
	}
	dst, ok := p.dev.resolve(p.rq.pd, recv.SGE[:recv.NumSGE], uint64(src.size), rdma.LocalWrite)
	if !ok {
		p.failReceive(&recv, rdma.StatusLocProtErr)
		return rdma.StatusRemOpErr, finished
	}
	p.corrupt(&dst, place(&dst, src))
	if doomed != nil {
		doomed.revoke()
	}
	p.arrived(wr, &recv, rdma.WCRecv)
	return rdma.StatusSuccess, finished
}

func (p *qp) takeReceive() rdma.RecvWR {
	if p.rq.count > 1 && p.dev.fab.faults.hit(FaultReorderReceives, p.dev) {
		p.rq.swap()
	}
	wr := p.rq.pop()
	if p.srq != nil {
		p.srq.checkLimit()
	}
	return wr
}

func (p *qp) arrived(wr *rdma.SendWR, recv *rdma.RecvWR, op rdma.WCOpcode) {
	faults := &p.dev.fab.faults
	wc := rdma.WC{ID: recv.ID, QPNum: p.num, Opcode: op, ByteLen: uint32(wr.Len())}
	if faults.hit(FaultWrongByteLen, p.dev) {
		wc.ByteLen ^= 1
	}
	switch wr.Op {
	case rdma.OpSendImm, rdma.OpWriteImm:
		if !faults.hit(FaultLoseImm, p.dev) {
			wc.Imm, wc.Flags = wr.Imm, rdma.WithImm
		}
	case rdma.OpSendInv:
		wc.InvKey, wc.Flags = wr.InvKey, rdma.WithInv
	}
	p.recvCQ.push(p, wc, &p.rq.slots, wr.Flags&rdma.Solicited != 0)
}

func (p *qp) failReceive(recv *rdma.RecvWR, st rdma.Status) {
	p.recvCQ.push(p, rdma.WC{ID: recv.ID, QPNum: p.num, Status: st}, &p.rq.slots, false)
	p.giveUp()
}

func (p *qp) takeAtomic(e *sendEntry) rdma.Status {
	if e.wr.RemoteAddr%atomicSize != 0 { // IBTA 9.4.5
		return p.refuseRequest()
	}
	mem, ok := p.remote(e.wr.RKey, e.wr.RemoteAddr, atomicSize, rdma.RemoteAtomic)
	if !ok {
		return p.refuseAccess()
	}
	if mem.size < atomicSize {
		return rdma.StatusSuccess // a fault let it through to memory that is not there
	}
	if e.wr.Op == rdma.OpFetchAdd && p.dev.fab.faults.hit(FaultLoseAdd, p.dev) {
		e.old = binary.NativeEndian.Uint64(mem.part[0])
		return rdma.StatusSuccess
	}
	e.old = fetch(&e.wr, mem.part[0])
	return rdma.StatusSuccess
}

// refuseAccess is a NAK of which the responder's application is notified (IBTA C9-222.1.1).
func (p *qp) refuseAccess() rdma.Status {
	p.dev.raise(rdma.EventQPAccess, p.num)
	p.giveUp()
	return rdma.StatusRemAccessErr
}

func (p *qp) refuseRequest() rdma.Status {
	p.dev.raise(rdma.EventQPRequest, p.num)
	p.giveUp()
	return rdma.StatusRemInvReqErr
}

func (p *qp) giveUp() {
	if !p.dev.fab.faults.hit(FaultStayUp, p.dev) {
		p.enterErr()
	}
}
