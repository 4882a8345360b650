package iwarp

import (
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// The ways a stream ends. Each leaves the QP in ERR with everything flushed.
//
//	terminate  a fault we found: Terminate, FIN, drain, close
//	deliverTerminate  a fault the peer found: FIN, drain, close
//	shut       the application's wish: FIN behind what was framed, drain, close
//	hungUp     the peer's FIN between FPDUs: the same
//	lost       reset, or FIN inside an FPDU: close

// terminate sends a Terminate (RFC 5040 §4.8) and ends the stream. ulpdu is the segment to quote, or nil.
func (q *qp) terminate(code rdmap.TermCode, ulpdu []byte) {
	if q.phase != phaseOpen {
		return
	}
	q.why = code
	event := rdma.EventQPRequest
	switch {
	case protection(code):
		event = rdma.EventQPAccess
	case code == rdmap.TermLocal || code == rdmap.TermDDPLocal:
		event = rdma.EventQPFatal
	}
	q.dev.raise(event, q.num, vendor(code))
	q.releaseMemory()
	var header, request []byte
	if ulpdu != nil {
		n := ddp.HeaderLen(ulpdu[0])
		header = ulpdu[:n]
		if q.rx.seg.op == rdmap.OpReadReq && len(ulpdu) >= n+rdmap.ReadRequestLen {
			request = ulpdu[n : n+rdmap.ReadRequestLen]
		}
	}
	t := rdmap.NewTerminate(code, len(ulpdu), header, request)
	var room [ddp.UntaggedLen + 128]byte
	ddp.PutUntagged(room[:], &ddp.Untagged{Last: true, ULP: rdmap.Control(rdmap.OpTerminate), QN: ddp.QNTerminate,
		MSN: 1})
	msg := rdmap.AppendTerminate(room[:ddp.UntaggedLen], &t)
	q.tx.frame(msg, nil, 0, false)
	q.shut()
}

func (q *qp) lost() {
	if q.phase != phaseOpen {
		return
	}
	q.dev.raise(rdma.EventQPFatal, q.num, vendor(rdmap.TermMPATCPLost))
	q.drop(false)
	q.setState(rdma.QPErr)
}

func (q *qp) fault(error) { q.lost() }

// hungUp handles the peer's orderly end. Framed octets are still sent (RFC 5041 §6.2).
func (q *qp) hungUp() {
	if q.dev.cfg.OnAck { // before its FIN the peer's stack had all that it has acknowledged
		q.retire()
	}
	q.dev.raise(rdma.EventPeerDisconnect, q.num, 0)
	q.shut()
}

// overran ends a QP whose completions no longer fit its CQ (ibv_get_async_event(3), IBV_EVENT_CQ_ERR).
func (q *qp) overran() { q.shut() }

// releaseMemory ends all reads of the memory of requests that complete though the peer may not have them.
func (q *qp) releaseMemory() {
	q.tx.detach()
	q.copyReferenced()
}

func (q *qp) copyReferenced() {
	if t := &q.tx; t.refs != nil && t.refEnd > t.acked {
		t.refs.Detach()
	}
}

// linger hands the stream to the background goroutine, which sends what is framed and FIN, and reads until the peer's
// end: closing with unread octets would reset the connection.
func (q *qp) linger() {
	switch q.phase {
	case phaseIdle:
		q.phase = phaseClosed
	case phaseOpen:
		q.releaseMemory()
		q.phase = phaseLinger
		q.leavePollers()
		q.deadline = time.Now().Add(lingerTimeout)
		q.lingerStep()
		if q.phase == phaseLinger {
			q.dev.bg.takeOver(q)
		}
	}
}

// lingerStep moves a lingering stream on until both sides are done or the peer is gone.
func (q *qp) lingerStep() {
	if q.phase != phaseLinger {
		return
	}
	if !q.tx.empty() {
		if err := q.tx.flush(q.conn); err != nil {
			q.drop(false)
			return
		}
	}
	if q.tx.empty() && !q.fin {
		q.fin = true
		q.conn.CloseWrite()
	}
	for pass := 0; pass < rxPasses && !q.eof; pass++ {
		_, err := q.conn.Recv(q.rx.buf) // whatever comes now is ignored (RFC 5040 §5.4)
		if err == stream.ErrAgain {
			return
		}
		q.eof = err != nil
	}
	if q.eof && q.fin {
		q.drop(false)
	}
}

// drop closes the socket, with RST if abort is set.
func (q *qp) drop(abort bool) {
	if q.phase == phaseClosed || q.conn == nil {
		return
	}
	q.leavePollers()
	q.phase = phaseClosed
	q.dev.bg.leave(q)
	if abort {
		q.conn.Abort()
	} else {
		q.conn.Close()
	}
	q.rx.buf, q.tx.buf = nil, nil
}

func (q *qp) flushAll() {
	q.flushSends(q.sqTail)
	q.sqNext = q.sqTail
	q.tx.src, q.tx.behind = srcNone, false
	q.reads.head = q.reads.tail
	q.irq.head = q.irq.tail
	if q.curUsed {
		q.curUsed = false
		status := q.recvFault
		if status == rdma.StatusSuccess {
			status = rdma.StatusWRFlushErr
		}
		q.pushFlushed(q.cur.ID, status)
	}
	if q.srq != nil {
		return // IBTA 10.2.9: receives of an SRQ stay for the other QPs
	}
	for wr := q.rq.first(); wr != nil; wr = q.rq.first() {
		q.rq.head++
		q.pushFlushed(wr.ID, rdma.StatusWRFlushErr)
	}
}

func (q *qp) pushFlushed(id uint64, s rdma.Status) {
	wc := rdma.WC{ID: id, QPNum: q.num, Opcode: rdma.WCRecv, Status: s, VendorErr: vendor(q.why)}
	q.recv.mu.Lock()
	q.recv.push(&wc, false, cqTag{member: noMember})
	q.recv.mu.Unlock()
}

func (q *qp) flushSends(end uint32) {
	for q.sqHead != end {
		q.complete(&q.sq[q.sqHead&uint32(len(q.sq)-1)], rdma.StatusWRFlushErr)
		q.sqHead++
	}
}
