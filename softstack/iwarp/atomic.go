package iwarp

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Atomic operations, RFC 7306 §5. Requests share queue 1, ORD and IRD with reads,
// and are answered in order with them; responses have queue 3.

// frameAtomic frames the Atomic Request of the entry at sqNext; false when there is no room or the QP failed.
func (q *qp) frameAtomic(e *sqEntry) bool {
	t := &q.tx
	if !t.room(rdmap.AtomicRequestLen, false) {
		return false
	}
	if q.ord == 0 {
		q.localFault(rdma.StatusLocQPOpErr) // nothing would ever answer it
		return false
	}
	if q.local(&e.wr.SGE[0], rdma.LocalWrite) == nil {
		q.localFault(rdma.StatusLocProtErr)
		return false
	}
	// The identifier is ours to choose; the sequence number is unique among those outstanding.
	r := rdmap.FetchAdd(t.readMSN, e.wr.RKey, e.wr.RemoteAddr, e.wr.CompareAdd)
	if e.wr.Op == rdma.OpCmpSwap {
		r = rdmap.CmpSwap(t.readMSN, e.wr.RKey, e.wr.RemoteAddr, e.wr.CompareAdd, e.wr.Swap)
	}
	var hdr [ddp.UntaggedLen + rdmap.AtomicRequestLen]byte
	ddp.PutUntagged(hdr[:], &ddp.Untagged{Last: true, ULP: rdmap.Control(rdmap.OpAtomicReq), QN: ddp.QNReadReq,
		MSN: t.readMSN})
	rdmap.PutAtomicRequest(hdr[ddp.UntaggedLen:], &r)
	t.readMSN++
	t.frame(hdr[:], nil, 0, false)
	q.reads.push(q.sqNext)
	q.begun(e)
	e.end = uint64(r.ID) // the response has to name it
	return true
}

// deliverAtomic checks an Atomic Request and queues it: its turn comes behind the reads before it (RFC 7306 §7).
func (q *qp) deliverAtomic(ulpdu []byte) {
	r := rdmap.GetAtomicRequest(ulpdu[ddp.UntaggedLen:])
	if code := q.checkAtomic(&r); code != 0 {
		q.terminate(code, ulpdu)
		return
	}
	in := &q.req[q.irq.tail&uint32(len(q.irq.ring)-1)]
	in.atomic, in.op = true, r
	q.asked()
}

// checkAtomic tests a request (RFC 7306 §5.2.1, §8.2), keys before alignment: memory of others stays unknown.
func (q *qp) checkAtomic(r *rdmap.AtomicRequest) rdmap.TermCode {
	if !r.Op.Assigned() {
		return rdmap.TermOpcode
	}
	m, code := q.source(r.STag, r.TO, rdmap.AtomicSize, rdma.RemoteAtomic)
	if code != 0 {
		return code
	}
	if uintptr(unsafe.Pointer(unsafe.SliceData(m.at(r.TO, rdmap.AtomicSize))))%rdmap.AtomicSize != 0 {
		return rdmap.TermStream // the address counts, not the offset
	}
	return 0
}

// frameAtomicResponse carries out the request at the head of irq and frames its response.
func (q *qp) frameAtomicResponse(r *rdmap.AtomicRequest) bool {
	t := &q.tx
	if !t.room(rdmap.AtomicResponseLen, false) {
		return false
	}
	m := q.find(r.STag) // checked when the request came; it may be gone since
	if m == nil {
		q.terminate(rdmap.TermProtSTag, nil)
		return false
	}
	old := execute(r, m.at(r.TO, rdmap.AtomicSize))
	var hdr [ddp.UntaggedLen + rdmap.AtomicResponseLen]byte
	ddp.PutUntagged(hdr[:], &ddp.Untagged{Last: true, ULP: rdmap.Control(rdmap.OpAtomicResp), QN: ddp.QNAtomicResp,
		MSN: t.respMSN})
	rdmap.PutAtomicResponse(hdr[ddp.UntaggedLen:], &rdmap.AtomicResponse{ID: r.ID, Original: old})
	t.respMSN++
	t.frame(hdr[:], nil, 0, false)
	q.irq.head++
	t.src = srcNone
	return true
}

// execute carries out an atomic on 8 aligned octets in the host's order and returns what they held. It is atomic
// against those of every other QP and device in this process, and against the application's own sync/atomic operations.
func execute(r *rdmap.AtomicRequest, mem []byte) uint64 {
	word := (*uint64)(unsafe.Pointer(unsafe.SliceData(mem)))
	for {
		old := atomic.LoadUint64(word)
		next := r.Result(old)
		if next == old && r.Op == rdmap.AtomicCmpSwap || atomic.CompareAndSwapUint64(word, old, next) {
			return old
		}
	}
}

// openAtomicResponse checks a response: the untagged buffers of queue 3 are the atomics that wait (RFC 7306 §5.2.2).
func (q *qp) openAtomicResponse(payload int) rdmap.TermCode {
	s := &q.rx.seg
	waits := q.reads.len() > 0
	if waits {
		i := q.reads.first()
		if q.rtrRead && i == rtrIndex || !q.sq[i&uint32(len(q.sq)-1)].wr.Op.IsAtomic() {
			return rdmap.TermOpcode // a read is to be answered first
		}
	}
	if _, code := q.rx.respQ.Check(&s.u, payload, rdmap.AtomicResponseLen, waits); code != 0 {
		return rdmap.FromDDP(code)
	}
	if payload != rdmap.AtomicResponseLen || !s.last {
		return rdmap.TermStream
	}
	return 0
}

func (q *qp) deliverAtomicResponse(ulpdu []byte) {
	r := rdmap.GetAtomicResponse(ulpdu[ddp.UntaggedLen:])
	e := &q.sq[q.reads.first()&uint32(len(q.sq)-1)]
	if uint64(r.ID) != e.end {
		q.terminate(rdmap.TermStream, ulpdu) // RFC 7306 §5.2.2: invalid, the code is left open
		return
	}
	sink := q.local(&e.wr.SGE[0], rdma.LocalWrite)
	if sink == nil { // its registration ended meanwhile
		q.terminate(rdmap.TermLocal, nil)
		return
	}
	binary.NativeEndian.PutUint64(sink, r.Original)
	e.done = true
	q.reads.head++
}

// quotesAtomic reports whether a Terminate shows an Atomic Request, without its RDMAP header (RFC 7306 §8.1).
func quotesAtomic(t *rdmap.Terminate) bool {
	if !t.D || ddp.IsTagged(t.DDP[0]) {
		return false
	}
	op, _ := rdmap.ParseControl(t.DDP[1])
	return op == rdmap.OpAtomicReq
}
