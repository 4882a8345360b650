package iwarp

import (
	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// segment is the inbound segment at hand, from its header to its delivery.
type segment struct {
	op      rdmap.Opcode
	tagged  bool
	last    bool
	inv     uint32
	stag    uint32
	to      uint64
	u       ddp.Untagged
	dst     []byte // where the payload goes, when that is one run of memory
	mr      *mr    // dst's registration
	scatter bool   // the payload spans several SGEs of cur
}

// placed tells segments whose payload goes into registered memory.
func (s *segment) placed() bool {
	return s.tagged || s.op == rdmap.OpSend || s.op == rdmap.OpSendSE || s.op == rdmap.OpSendInv ||
		s.op == rdmap.OpSendSEInv
}

// revoked is the reason to end a stream whose segment at hand lost its registration, and the segment to quote: for a
// Write as the next one to that key would meet, else a fault of our own.
func (s *segment) revoked() (rdmap.TermCode, []byte) {
	if s.op != rdmap.OpWrite {
		return rdmap.TermDDPLocal, nil
	}
	ulpdu := make([]byte, ddp.TaggedLen+len(s.dst))
	ddp.PutTagged(ulpdu, &ddp.Tagged{Last: s.last, ULP: rdmap.Control(s.op), STag: s.stag, TO: s.to})
	return rdmap.TermTaggedSTag, ulpdu
}

// parse reads the headers into rx.seg and checks what they alone tell (RFC 5041 §7.1, RFC 5040 §7.2).
func (q *qp) parse(h []byte, payload int) rdmap.TermCode {
	s := &q.rx.seg
	s.dst, s.mr, s.scatter = nil, nil, false
	s.tagged, s.last = ddp.IsTagged(h[0]), ddp.IsLast(h[0])
	if !ddp.VersionOK(h[0]) {
		if s.tagged {
			return rdmap.TermTaggedVersion
		}
		return rdmap.TermUntaggedVersion
	}
	op, ok := rdmap.ParseControl(h[1])
	if !ok {
		return rdmap.TermRDMAPVersion
	}
	s.op = op
	qn := uint32(0)
	if s.tagged {
		t := ddp.GetTagged(h)
		s.stag, s.to = t.STag, t.TO
	} else {
		s.u = ddp.GetUntagged(h)
		s.inv, qn = s.u.InvSTag, s.u.QN
	}
	return rdmap.CheckInbound(op, s.tagged, qn, q.dev.cfg.Extensions != ExtNone)
}

// open finds where a segment's payload goes, after the checks. When it returns a code it has changed nothing.
func (q *qp) open(payload int) rdmap.TermCode {
	s := &q.rx.seg
	switch s.op {
	case rdmap.OpWrite:
		return q.openWrite(payload)
	case rdmap.OpReadResp:
		return q.openResponse(payload)
	case rdmap.OpReadReq:
		return q.openRequest(payload, rdmap.ReadRequestLen)
	case rdmap.OpAtomicReq:
		return q.openRequest(payload, rdmap.AtomicRequestLen)
	case rdmap.OpAtomicResp:
		return q.openAtomicResponse(payload)
	case rdmap.OpImmediate, rdmap.OpImmediateSE:
		return q.openImmediate(payload)
	case rdmap.OpTerminate:
		// Any size: what cannot be parsed tears the stream down all the same.
		return 0
	}
	return q.openSend(payload)
}

func (q *qp) openWrite(payload int) rdmap.TermCode {
	s := &q.rx.seg
	if payload == 0 {
		return 0 // RFC 5041 §5.2: STag and TO MUST NOT be checked
	}
	m := q.find(s.stag)
	if m == nil {
		return rdmap.TermTaggedSTag
	}
	if m.pd != q.cfg.PD {
		return rdmap.TermTaggedNotAssoc
	}
	if code := ddp.CheckBounds(s.to, payload, m.base, uint64(len(m.buf))); code != 0 {
		return rdmap.FromDDP(code)
	}
	if !m.access.Has(rdma.RemoteWrite) || !q.admits(rdma.RemoteWrite) {
		return rdmap.TermProtAccess // RFC 5040 §7.2
	}
	s.mr, s.dst = m, m.at(s.to, uint32(payload))
	return 0
}

// admits reports whether the QP lets the peer do this at all (qp_access_flags).
func (q *qp) admits(a rdma.Access) bool { return q.cfg.Access == 0 || q.cfg.Access.Has(a) }

// openResponse checks a read response: it must fill the sink of the oldest read exactly, in order.
func (q *qp) openResponse(payload int) rdmap.TermCode {
	s := &q.rx.seg
	if q.reads.len() == 0 {
		return rdmap.TermOpcode
	}
	i := q.reads.first()
	if q.rtrRead && i == rtrIndex {
		if payload > 0 || !s.last {
			return rdmap.TermTaggedBounds
		}
		return 0
	}
	e := &q.sq[i&uint32(len(q.sq)-1)]
	if e.wr.Op != rdma.OpRead {
		return rdmap.TermOpcode // an atomic is to be answered first
	}
	got := uint32(e.end) // octets of the response so far; a read does not use end otherwise
	var sink rdma.SGE
	if e.wr.NumSGE == 1 {
		sink = e.wr.SGE[0]
	}
	left := sink.Len - got
	if uint32(payload) > left || s.last != (uint32(payload) == left) {
		return rdmap.TermTaggedBounds
	}
	if payload == 0 {
		return 0
	}
	if s.stag != sink.LKey {
		return rdmap.TermTaggedSTag
	}
	if s.to != sink.Addr+uint64(got) {
		return rdmap.TermTaggedBounds
	}
	m := q.find(sink.LKey)
	if m == nil {
		return rdmap.TermTaggedSTag
	}
	dst := m.at(s.to, uint32(payload))
	if dst == nil {
		return rdmap.TermTaggedBounds
	}
	s.mr, s.dst = m, dst
	return 0
}

// openRequest checks queue order and room for a request of size octets; delivery checks the request itself.
func (q *qp) openRequest(payload, size int) rdmap.TermCode {
	s := &q.rx.seg
	room := q.irq.len() < q.ird // one queue and one IRD for both (RFC 7306 §5.2)
	if _, code := q.rx.readQ.Check(&s.u, payload, uint32(size), room); code != 0 {
		return rdmap.FromDDP(code)
	}
	if payload != size || !s.last {
		return rdmap.TermStream // RFC 5040 §4.4, RFC 7306 §5.2.1: exactly one segment
	}
	return 0
}

// declined is open's answer to direct placement that it cannot serve; it never leaves the package.
const declined rdmap.TermCode = 1

// openSend binds a message to a receive, which stays bound when the segment is refused: it completes with the stream.
func (q *qp) openSend(payload int) rdmap.TermCode {
	s := &q.rx.seg
	rq := &q.rx.sendQ
	if !q.curUsed && s.u.MSN == rq.MSN() {
		q.curUsed = q.takeRecv()
	}
	if rq.Open() && s.op != q.msgOp {
		return rdmap.TermOpcode // one message, one operation
	}
	size := uint32(0)
	if q.curUsed {
		size = uint32(min(q.cur.Len(), maxMessage))
		if uint64(s.u.MO)+uint64(payload) <= uint64(size) {
			if !q.locate(uint32(payload)) {
				q.recvFault = rdma.StatusLocProtErr
				return rdmap.TermDDPLocal
			}
			if s.scatter && q.rx.placing {
				return declined
			}
		}
	}
	if _, code := rq.Check(&s.u, payload, size, q.curUsed); code != 0 {
		if code == ddp.ErrUntaggedTooLong {
			q.recvFault = rdma.StatusLocLenErr
		}
		return rdmap.FromDDP(code)
	}
	q.msgOp = s.op
	return 0
}

// locate finds the memory of payload octets in the current receive, or marks the segment as scattered. False: an SGE is
// not usable.
func (q *qp) locate(payload uint32) bool {
	s := &q.rx.seg
	if payload == 0 {
		return true
	}
	off := s.u.MO
	for i := range int(q.cur.NumSGE) {
		g := &q.cur.SGE[i]
		if off >= g.Len {
			off -= g.Len
			continue
		}
		// The registration first: so forget never misses a segment that is being placed.
		m := q.find(g.LKey)
		b := q.local(g, rdma.LocalWrite)
		if b == nil {
			return false
		}
		if payload > g.Len-off {
			s.scatter = true
			return true
		}
		s.mr, s.dst = m, b[off:off+payload]
		return true
	}
	return true
}

func (q *qp) scatter(payload []byte) {
	off := q.rx.seg.u.MO
	for i := range int(q.cur.NumSGE) {
		g := &q.cur.SGE[i]
		if off >= g.Len {
			off -= g.Len
			continue
		}
		b := q.local(g, rdma.LocalWrite)
		if b == nil {
			q.recvFault = rdma.StatusLocProtErr
			q.terminate(rdmap.TermDDPLocal, nil)
			return
		}
		n := copy(b[off:], payload)
		q.counts.Placed += uint64(n)
		payload = payload[n:]
		off = 0
		if len(payload) == 0 {
			return
		}
	}
}

func (q *qp) takeRecv() bool {
	if q.srq != nil {
		return q.srq.take(&q.cur)
	}
	wr := q.rq.first()
	if wr == nil {
		return false
	}
	q.cur = *wr
	q.rq.head++
	return true
}
