package iwarp

import (
	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// transmit frames messages, responses and send queue entries in turn, hands batches to the socket, and retires entries
// whose last octet it took.
func (q *qp) transmit() {
	if q.phase != phaseOpen {
		return
	}
	t := &q.tx
	t.more = false // before any return: it makes sleepers ask for room
	if q.sqHead == q.sqTail && t.src == srcNone && t.empty() && q.irq.len() == 0 && q.state == rdma.QPRTS {
		return // most polls of who waits
	}
	for from := t.sent; ; {
		if t.sent-from >= sendTurn && q.rx.inBulk() && !q.posted(sendRest) {
			t.more = true // the next turn goes on; what the peer sends meanwhile is taken first
			break
		}
		framed := q.frameSome()
		if q.phase != phaseOpen {
			return // a local fault ended the stream
		}
		if t.empty() {
			break
		}
		if err := t.flush(q.conn); err != nil {
			q.lost()
			return
		}
		if t.blocked || !framed {
			break
		}
	}
	q.retire()
	q.checkDrained()
	if r := q.dev.receiver; r != nil && q.needsPolling() {
		r.wakeUp()
	}
}

// posted reports whether no more than limit octets are posted and not framed, in at most 64 entries, and no answer is
// due: short messages are no rest that is worth a walk.
func (q *qp) posted(limit uint64) bool {
	if q.irq.len() > 0 || q.sqTail-q.sqNext > 64 {
		return false
	}
	n := uint64(0)
	for i := q.sqNext; i != q.sqTail; i++ {
		n += q.sq[i&uint32(len(q.sq)-1)].wr.Len()
	}
	return n <= limit+uint64(q.tx.off) // octets of the message at hand that are framed
}

// frameSome frames up to one batch, and read requests behind it: a scheduler's mark alone would cost a call to the
// socket and a packet. more: the batch was full.
func (q *qp) frameSome() (more bool) {
	t := &q.tx
	for t.framed-t.sent < t.batch || t.src == srcNone && q.irq.len() == 0 && q.canSend() &&
		q.sq[q.sqNext&uint32(len(q.sq)-1)].wr.Op == rdma.OpRead {
		if t.src == srcNone && !q.pick() {
			return false
		}
		var ok bool
		if t.src == srcRead {
			ok = q.frameResponse()
		} else {
			ok = q.frameEntry()
		}
		if !ok {
			return q.phase == phaseOpen
		}
	}
	return true
}

func (q *qp) pick() bool {
	t := &q.tx
	if !t.start.MaySend() { // a responder waits for the first FPDU (RFC 5044 §7.1.2 rule 4)
		return false
	}
	read, send := q.irq.len() > 0, q.canSend()
	switch {
	case read && (t.turn || !send):
		t.src, t.turn = srcRead, false
	case send:
		t.src, t.turn = srcSQ, true
	default:
		return false
	}
	t.off = 0
	return true
}

func (q *qp) canSend() bool {
	if q.sqNext == q.sqTail || q.state != rdma.QPRTS {
		return false
	}
	e := &q.sq[q.sqNext&uint32(len(q.sq)-1)]
	if q.reads.len() > 0 {
		if e.wr.Flags&rdma.Fence != 0 {
			return false // IBTA 10.8.3.3
		}
		if e.wr.Op.Responds() && q.reads.len() >= max(q.ord, 1) {
			return false // RFC 5040 §6.1: never exceed ORD, which atomics share (RFC 7306 §5.2)
		}
	}
	return true
}

// frameEntry frames the next segment of the entry at sqNext; false when there is no room or the QP failed.
func (q *qp) frameEntry() bool {
	t := &q.tx
	slot := q.sqNext & uint32(len(q.sq)-1)
	e := &q.sq[slot]
	var pieces [rdma.MaxSGE]piece
	var hdr [ddp.UntaggedLen + rdmap.ReadRequestLen]byte
	switch e.wr.Op {
	case rdma.OpRead:
		if !t.room(rdmap.ReadRequestLen, false) {
			return false
		}
		var sink rdma.SGE
		if e.wr.NumSGE == 1 {
			sink = e.wr.SGE[0]
		}
		if q.ord == 0 {
			q.localFault(rdma.StatusLocQPOpErr) // nothing would ever answer it
			return false
		}
		if sink.Len > 0 && q.local(&sink, rdma.LocalWrite) == nil {
			q.localFault(rdma.StatusLocProtErr)
			return false
		}
		ddp.PutUntagged(hdr[:], &ddp.Untagged{Last: true, ULP: rdmap.Control(rdmap.OpReadReq), QN: ddp.QNReadReq,
			MSN: t.readMSN})
		rdmap.PutReadRequest(hdr[ddp.UntaggedLen:], &rdmap.ReadRequest{
			SinkSTag: sink.LKey, SinkTO: sink.Addr, Size: sink.Len, SrcSTag: e.wr.RKey, SrcTO: e.wr.RemoteAddr,
		})
		t.readMSN++
		t.frame(hdr[:], nil, 0, false)
		q.reads.push(q.sqNext)
		q.begun(e)
		e.end = 0 // counts the response from here on
		return true
	case rdma.OpFetchAdd, rdma.OpCmpSwap:
		return q.frameAtomic(e)
	case rdma.OpSendImm:
		return q.frameImmediate(e)
	case rdma.OpWriteImm:
		if t.behind {
			return q.frameImmediate(e)
		}
	case rdma.OpLocalInv:
		m := q.find(e.wr.InvKey)
		if m == nil || m.pd != q.cfg.PD {
			q.localFault(rdma.StatusLocProtErr)
			return false
		}
		m.invalidate()
		e.done = true
		q.begun(e)
		return true
	}
	size := uint32(e.wr.Len())
	hlen, tagged := ddp.UntaggedLen, e.wr.Op == rdma.OpWrite || e.wr.Op == rdma.OpWriteImm
	if tagged {
		hlen = ddp.TaggedLen
	}
	n := min(size-t.off, t.segment(size, hlen))
	if !t.room(int(n), false) {
		return false
	}
	k, ok := q.gather(e, slot, t.off, n, &pieces)
	if !ok {
		q.localFault(rdma.StatusLocProtErr)
		return false
	}
	last := t.off+n == size
	if tagged {
		ddp.PutTagged(hdr[:], &ddp.Tagged{Last: last, ULP: rdmap.Control(rdmap.OpWrite), STag: e.wr.RKey,
			TO: e.wr.RemoteAddr + uint64(t.off)})
	} else {
		h := ddp.Untagged{Last: last, ULP: sendControl(&e.wr), QN: ddp.QNSend, MSN: t.sendMSN, MO: t.off}
		if e.wr.Op == rdma.OpSendInv {
			h.InvSTag = e.wr.InvKey
		}
		ddp.PutUntagged(hdr[:], &h)
	}
	t.frame(hdr[:hlen], pieces[:k], int(n), false)
	t.off += n
	if last {
		if e.wr.Op == rdma.OpWriteImm {
			t.behind = true
			return true
		}
		if !tagged {
			t.sendMSN++
		}
		q.begun(e)
	}
	return true
}

func sendControl(wr *rdma.SendWR) byte {
	op := rdmap.OpSend
	switch inv, se := wr.Op == rdma.OpSendInv, wr.Flags&rdma.Solicited != 0; {
	case inv && se:
		op = rdmap.OpSendSEInv
	case inv:
		op = rdmap.OpSendInv
	case se:
		op = rdmap.OpSendSE
	}
	return rdmap.Control(op)
}

func (q *qp) begun(e *sqEntry) {
	e.end = q.tx.framed
	q.sqNext++
	q.tx.src = srcNone
}

// gather finds the memory of payload octets [off, off+n) of an entry.
func (q *qp) gather(e *sqEntry, slot, off, n uint32, pieces *[rdma.MaxSGE]piece) (k int, ok bool) {
	if e.wr.Flags&rdma.Inline != 0 {
		pieces[0] = piece{b: q.inlineAt(slot)[off : off+n]}
		return 1, true
	}
	for i := range int(e.wr.NumSGE) {
		s := &e.wr.SGE[i]
		if off >= s.Len {
			off -= s.Len
			continue
		}
		b := q.local(s, 0)
		if b == nil {
			return 0, false
		}
		take := min(s.Len-off, n)
		pieces[k] = piece{b[off : off+take], s.LKey}
		k++
		n -= take
		off = 0
		if n == 0 {
			break
		}
	}
	return k, n == 0
}

// localFault completes the entry at sqNext with an error of ours and ends the stream.
func (q *qp) localFault(status rdma.Status) {
	slot := q.sqNext & uint32(len(q.sq)-1)
	e := &q.sq[slot]
	q.tx.src = srcNone
	q.tx.flush(q.conn) // what was framed before is right and gets its chance; a lost stream shows in terminate
	q.retire()
	if q.phase != phaseOpen {
		return // its completions overran the CQ, and everything was flushed
	}
	// Entries before this one are flushed first, to keep the order of completions.
	q.releaseMemory()
	q.flushSends(q.sqNext)
	q.complete(e, status)
	q.sqHead++
	q.sqNext++
	q.terminate(rdmap.TermLocal, nil)
}

func (q *qp) frameResponse() bool {
	t := &q.tx
	if in := &q.req[q.irq.slot()]; in.atomic {
		return q.frameAtomicResponse(&in.op)
	}
	r := &q.req[q.irq.slot()].read
	n := min(r.Size-t.off, t.segment(r.Size, ddp.TaggedLen))
	// The source's owner does not know of the read, and may change it under a CRC or a retransmission: it is copied.
	fixed := t.crc || t.refs != nil
	if !t.room(int(n), fixed) {
		return false
	}
	var source [1]piece
	if n > 0 {
		// The source was checked when the request came; it may be gone since.
		m := q.find(r.SrcSTag)
		if m == nil {
			q.terminate(rdmap.TermProtSTag, nil)
			return false
		}
		source[0] = piece{m.at(r.SrcTO+uint64(t.off), n), r.SrcSTag}
	}
	last := t.off+n == r.Size
	var hdr [ddp.TaggedLen]byte
	ddp.PutTagged(hdr[:], &ddp.Tagged{Last: last, ULP: rdmap.Control(rdmap.OpReadResp), STag: r.SinkSTag,
		TO: r.SinkTO + uint64(t.off)})
	t.frame(hdr[:], source[:], int(n), fixed)
	t.off += n
	if last {
		q.irq.head++
		t.src = srcNone
	}
	return true
}

// answeredOps are done when something came for them, not when they were sent.
const answeredOps = rdma.OpSet(1<<rdma.OpRead|1<<rdma.OpLocalInv) | atomicOps

// retire completes entries in post order (RFC 5040 §5.5): sends and writes once the socket has their last octet, or
// with OnAck the peer's, reads with their response.
func (q *qp) retire() {
	if q.sqHead == q.sqNext {
		return
	}
	locked := false
	for q.sqHead != q.sqNext {
		e := &q.sq[q.sqHead&uint32(len(q.sq)-1)]
		if answeredOps.Has(e.wr.Op) {
			if !e.done {
				break
			}
		} else if e.end > q.tx.sent || q.dev.cfg.OnAck && e.end > q.tx.acked && !q.acknowledged(e.end) {
			break
		}
		if e.wr.Flags&rdma.Signaled != 0 || q.cfg.SigAll {
			if !locked {
				q.send.mu.Lock()
				locked = true
			}
			wc := rdma.WC{ID: e.wr.ID, QPNum: q.num, Opcode: e.wr.Op.Completes()}
			if e.wr.Op.Responds() {
				wc.ByteLen = uint32(e.wr.Len())
			}
			q.send.push(&wc, false, cqTag{q.member, q.sqHead + 1})
		}
		q.sqHead++
	}
	if locked {
		overrun := q.send.overrun
		q.send.mu.Unlock()
		if overrun {
			q.overran()
		}
	}
}

// acknowledged asks the stack whether the peer's has all octets below end.
func (q *qp) acknowledged(end uint64) bool {
	if n, err := q.conn.Unacked(); err == nil && n >= 0 && uint64(n) <= q.tx.sent {
		q.tx.acked = q.tx.sent - uint64(n)
	}
	return end <= q.tx.acked
}

// complete reports the entry at sqHead with an error; errors always complete (IBTA 10.7.3.1).
func (q *qp) complete(e *sqEntry, s rdma.Status) {
	wc := rdma.WC{ID: e.wr.ID, QPNum: q.num, Opcode: e.wr.Op.Completes(), Status: s, VendorErr: vendor(q.why)}
	q.send.mu.Lock()
	q.send.push(&wc, false, cqTag{q.member, q.sqHead + 1})
	q.send.mu.Unlock()
}

// vendor is the Terminate reason as WC and Event carry it: 0xLECC.
func vendor(c rdmap.TermCode) uint32 {
	if c == 0 {
		return 0
	}
	return uint32(c.Layer())<<12 | uint32(c.EType())<<8 | uint32(c.Code())
}
