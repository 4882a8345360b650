package iwarp

import (
	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Immediate Data, RFC 7306 §6: behind an RDMA Write a write with immediate, alone a send of no bytes.

// writeTrail is what the receiver knows of the Write before an Immediate Data.
type writeTrail struct {
	size  uint32 // octets of the Write at hand, or of the last one
	open  bool   // its last segment has not come
	ended bool   // a Write is the last message that came, responses apart
}

func (w *writeTrail) add(n int, last bool) {
	if !w.open {
		w.size = 0
	}
	w.size += uint32(n)
	w.open, w.ended = !last, last
}

// frameImmediate frames the Immediate Data of the entry at sqNext; false when there is no room.
func (q *qp) frameImmediate(e *sqEntry) bool {
	t := &q.tx
	if !t.room(rdmap.ImmediateLen, false) {
		return false
	}
	op := rdmap.OpImmediate
	if e.wr.Flags&rdma.Solicited != 0 {
		op = rdmap.OpImmediateSE
	}
	v := rdmap.Immediate{Value: e.wr.Imm, Alone: e.wr.Op == rdma.OpSendImm}
	var hdr [ddp.UntaggedLen + rdmap.ImmediateLen]byte
	ddp.PutUntagged(hdr[:], &ddp.Untagged{Last: true, ULP: rdmap.Control(op), QN: ddp.QNSend, MSN: t.sendMSN})
	rdmap.PutImmediate(hdr[ddp.UntaggedLen:], v.Octets())
	t.sendMSN++
	t.frame(hdr[:], nil, 0, false)
	t.behind = false
	q.begun(e)
	return true
}

// openImmediate binds the message to a receive, whose memory is not touched.
func (q *qp) openImmediate(payload int) rdmap.TermCode {
	s := &q.rx.seg
	rq := &q.rx.sendQ
	if rq.Open() {
		return rdmap.TermOpcode // one message, one operation
	}
	if !q.curUsed && s.u.MSN == rq.MSN() {
		q.curUsed = q.takeRecv()
	}
	if _, code := rq.Check(&s.u, payload, rdmap.ImmediateLen, q.curUsed); code != 0 {
		return rdmap.FromDDP(code)
	}
	if payload != rdmap.ImmediateLen || !s.last {
		return rdmap.TermStream // RFC 7306 §6.3: exactly 8 octets
	}
	return 0
}

func (q *qp) deliverImmediate(ulpdu []byte) {
	v := rdmap.ImmediateOf(rdmap.GetImmediate(ulpdu[ddp.UntaggedLen:]))
	wc := rdma.WC{ID: q.cur.ID, QPNum: q.num, Opcode: rdma.WCRecv, Flags: rdma.WithImm, Imm: v.Value}
	if w := &q.rx.write; w.ended && !v.Alone {
		wc.Opcode, wc.ByteLen = rdma.WCRecvWriteImm, w.size
	}
	q.rx.write.ended = false
	q.curUsed = false
	q.pushRecv(&wc, q.rx.seg.op.Solicited())
}
