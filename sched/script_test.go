package sched_test

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// scriptDevice carries out requests on real memory when the test says so. With local completions, sends and writes
// complete at the post. With loop, each QP is its own peer: messages wait for receives posted to it.
type scriptDevice struct {
	nullDevice
	local bool
	loose bool // with local: what needs no answer completes before earlier reads
	loop  bool
	apart bool // for the rig: receives complete in a queue of their own
	mrs   uint32
	qps   []*scriptQP
}

// firstKey is that of the first registration: the tests' own keys are below it.
const firstKey = 1 << 20

type scriptMR struct {
	rdma.Buffer
	key    uint32
	access rdma.Access
}

func (m scriptMR) LKey() uint32        { return m.key }
func (m scriptMR) RKey() uint32        { return m.key }
func (m scriptMR) Len() uint64         { return uint64(m.Buffer.Len()) }
func (m scriptMR) Access() rdma.Access { return m.access }
func (m scriptMR) Close() error        { return nil }

func (d *scriptDevice) RegMR(_ rdma.PD, buf rdma.Buffer, access rdma.Access) (rdma.MR, error) {
	if !d.loop {
		return nil, rdma.ErrNotSupported
	}
	d.mrs++
	return scriptMR{buf, firstKey + d.mrs - 1, access}, nil
}

func newScript(local bool) *scriptDevice {
	d := &scriptDevice{nullDevice: *newNull(), local: local}
	if local {
		d.caps.Completion = rdma.CompletionLocal
	}
	return d
}

func (d *scriptDevice) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	q := &scriptQP{nullQP: nullQP{num: uint32(len(d.qps)) + 1, cq: cfg.SendCQ.(*nullCQ), depth: cfg.SendDepth}, dev: d}
	if q.in = q.cq; d.apart {
		q.in = cfg.RecvCQ.(*nullCQ)
	}
	d.qps = append(d.qps, q)
	return q, nil
}

type scriptEntry struct {
	wr      rdma.SendWR
	arrived bool
}

type scriptQP struct {
	nullQP
	dev       *scriptDevice
	queue     []scriptEntry // not completed
	next      int           // of queue, not carried out
	arriving  []rdma.SendWR // carried out
	ended     bool
	calls     int // of PostSend
	looks     int // at State
	onPost    func(wr *rdma.SendWR)
	refuses   func(wr *rdma.SendWR) bool
	refusedBy error // what PostSend says then; nil: rdma.ErrInvalid
	failAfter int   // requests to be carried out before one fails; below 0: none
	status    rdma.Status
	recvs     []rdma.RecvWR
	in        *nullCQ // where they complete
	drains    int     // calls of Drain
	resumes   int     // and of Resume
	refusal   error   // of Drain, Resume and Disconnect
}

func (q *scriptQP) Drain() error {
	q.drains++
	return q.refusal
}

func (q *scriptQP) Resume() error {
	q.resumes++
	return q.refusal
}

func (q *scriptQP) PostRecv(wrs []rdma.RecvWR) (int, error) {
	q.recvs = append(q.recvs, wrs...)
	return len(wrs), nil
}

// deliver gives a message the oldest receive. It is false without one.
func (q *scriptQP) deliver(wr *rdma.SendWR) bool {
	op := rdma.WCRecv
	switch {
	case !q.dev.loop || wr.Op == rdma.OpWrite || wr.Op == rdma.OpRead:
		return true
	case len(q.recvs) == 0:
		return false
	case wr.Op == rdma.OpWriteImm:
		op = rdma.WCRecvWriteImm
	}
	r := q.recvs[0]
	q.recvs = q.recvs[1:]
	wc := rdma.WC{ID: r.ID, QPNum: q.num, Opcode: op, ByteLen: uint32(wr.Len())}
	if wr.Op == rdma.OpSendImm || wr.Op == rdma.OpWriteImm {
		wc.Imm, wc.Flags = wr.Imm, rdma.WithImm
	}
	if wr.Op != rdma.OpWriteImm {
		if len(scatter(r.SGE[:r.NumSGE], take(wr))) > 0 {
			wc = rdma.WC{ID: r.ID, QPNum: q.num, Status: rdma.StatusLocLenErr}
		}
	}
	q.in.push(wc)
	return true
}

func (q *scriptQP) State() rdma.QPState {
	q.looks++
	if q.ended {
		return rdma.QPErr
	}
	return rdma.QPRTS
}

func (q *scriptQP) Fail() error {
	q.end(0, rdma.StatusWRFlushErr)
	return nil
}

func (q *scriptQP) Close() error { return q.Fail() }

func (q *scriptQP) Disconnect(context.Context) error {
	if q.refusal != nil {
		return q.refusal
	}
	return q.Fail()
}

func (q *scriptQP) PostSend(wrs []rdma.SendWR) (int, error) {
	q.calls++
	for i := range wrs {
		wr := wrs[i]
		if q.refuses != nil && q.refuses(&wr) {
			q.retire()
			return i, cmp.Or(q.refusedBy, error(rdma.ErrInvalid))
		}
		if q.onPost != nil {
			q.onPost(&wr)
		}
		// a place is taken until its completion is polled
		if !q.dev.loop && len(q.queue)+q.cq.many >= q.depth || len(q.queue) >= q.depth {
			return i, rdma.ErrQueueFull
		}
		if q.ended {
			q.push(&wr, rdma.StatusWRFlushErr)
			continue
		}
		if wr.Flags&rdma.Inline != 0 { // the bytes are the caller's again
			b := take(&wr)
			buf, err := rdma.Alloc(max(len(b), 1))
			if err != nil {
				return i, err
			}
			copy(buf.Bytes(), b)
			wr.SGE[0] = rdma.SGE{Addr: buf.Addr(), Len: uint32(len(b))}
			wr.NumSGE = 1
		}
		q.queue = append(q.queue, scriptEntry{wr: wr})
	}
	q.retire()
	return len(wrs), nil
}

// carryOut executes up to n requests.
func (q *scriptQP) carryOut(n int) (done int) {
	for ; done < n && q.next < len(q.queue) && !q.ended; done++ {
		e := &q.queue[q.next]
		if q.failAfter == 0 {
			q.end(q.next, q.status)
			return done
		}
		if !q.deliver(&e.wr) {
			break
		}
		q.failAfter--
		wr := &e.wr
		if wr.Op == rdma.OpRead {
			scatter(wr.SGE[:wr.NumSGE], rdma.BufferAt(wr.RemoteAddr, int(wr.Len())))
		} else if b := take(wr); len(b) > 0 && !sends.Has(wr.Op) {
			copy(rdma.BufferAt(wr.RemoteAddr, len(b)), b)
		}
		e.arrived = true
		q.arriving = append(q.arriving, *wr)
		q.next++
	}
	q.retire()
	return done
}

// retire completes requests in post order.
func (q *scriptQP) retire() {
	for len(q.queue) > 0 {
		e := &q.queue[0]
		if !e.arrived && (!q.dev.local || e.wr.Op.Responds() && !q.dev.loose) {
			return
		}
		if !e.arrived { // handed over: it still has to arrive
			break
		}
		q.queue, q.next = q.queue[1:], q.next-1
		if e.wr.Flags&rdma.Signaled != 0 {
			q.push(&e.wr, rdma.StatusSuccess)
		}
	}
	if !q.dev.local {
		return
	}
	// Local completions need not wait for the arrival: they are told at once, and the entry stays until it has arrived.
	for i := range q.queue {
		e := &q.queue[i]
		if e.wr.Op.Responds() && !e.arrived {
			if q.dev.loose {
				continue
			}
			return
		}
		if e.wr.Flags&rdma.Signaled != 0 {
			q.push(&e.wr, rdma.StatusSuccess)
			e.wr.Flags &^= rdma.Signaled
		}
		e.wr.ID = ^uint64(0)
	}
}

// end fails request i and flushes what follows.
func (q *scriptQP) end(i int, st rdma.Status) {
	if q.ended {
		return
	}
	q.ended = true
	for k := range q.queue {
		e := &q.queue[k]
		switch {
		case e.wr.ID == ^uint64(0): // was told
		case k < i:
			if e.wr.Flags&rdma.Signaled != 0 {
				q.push(&e.wr, rdma.StatusSuccess)
			}
		case k == i:
			q.push(&e.wr, st)
		default:
			q.push(&e.wr, rdma.StatusWRFlushErr)
		}
	}
	q.queue, q.next = nil, 0
}

func (q *scriptQP) push(wr *rdma.SendWR, st rdma.Status) {
	wc := rdma.WC{ID: wr.ID, QPNum: q.num, Status: st}
	if st == rdma.StatusSuccess {
		wc.Opcode = wr.Op.Completes()
		if wr.Op.Responds() {
			wc.ByteLen = uint32(wr.Len())
		}
	}
	q.cq.push(wc)
}

func (c *nullCQ) push(wc rdma.WC) {
	if c.many == len(c.wcs) {
		panic(fmt.Sprintf("completion queue of %d overrun", len(c.wcs)))
	}
	c.wcs[(c.first+c.many)%len(c.wcs)] = wc
	c.many++
}

var sends = rdma.Ops(rdma.OpSend, rdma.OpSendImm, rdma.OpSendInv)

// take gathers the bytes of a request.
func take(wr *rdma.SendWR) []byte {
	var b []byte
	for _, s := range wr.SGE[:wr.NumSGE] {
		b = append(b, rdma.BufferAt(s.Addr, int(s.Len))...)
	}
	return b
}

// scatter is what of b has no place in a list.
func scatter(list []rdma.SGE, b []byte) []byte {
	for _, s := range list {
		b = b[copy(rdma.BufferAt(s.Addr, int(s.Len)), b):]
	}
	return b
}
