package conform

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type want struct {
	id     uint64
	status []rdma.Status // empty: success
	op     rdma.WCOpcode // receives
	bytes  uint32        // receives
	flags  rdma.WCFlags
	imm    uint32
	key    uint32
}

func ok(n int) want                           { return want{id: sendID(n)} }
func got(n, bytes int) want                   { return want{id: recvID(n), op: rdma.WCRecv, bytes: uint32(bytes)} }
func (w want) withImm(v uint32) want          { w.flags |= rdma.WithImm; w.imm = v; return w }
func (w want) withInv(key uint32) want        { w.flags |= rdma.WithInv; w.key = key; return w }
func (w want) byWrite() want                  { w.op = rdma.WCRecvWriteImm; return w }
func sendFails(n int, st ...rdma.Status) want { return want{id: sendID(n), status: st} }
func recvFails(n int, st ...rdma.Status) want { return want{id: recvID(n), status: st} }

func (w *want) text() string {
	s := idText(w.id)
	if len(w.status) > 0 {
		var names []string
		for _, st := range w.status {
			names = append(names, st.String())
		}
		return s + " " + strings.Join(names, " or ")
	}
	s += " success"
	if w.id&recvBit != 0 {
		s += fmt.Sprintf(", %s, %d bytes", w.op, w.bytes)
	}
	return s + extras(w.flags, w.imm, w.key)
}

// fits leaves the opcode and length of sends to file, which compared them.
func (w *want) fits(wc *rdma.WC) bool {
	if wc.ID != w.id {
		return false
	}
	if len(w.status) > 0 {
		return slices.Contains(w.status, wc.Status)
	}
	if wc.Status != rdma.StatusSuccess || wc.Flags != w.flags {
		return false
	}
	if w.flags&rdma.WithImm != 0 && wc.Imm != w.imm || w.flags&rdma.WithInv != 0 && wc.InvKey != w.key {
		return false
	}
	return w.id&recvBit == 0 || wc.Opcode == w.op && wc.ByteLen == w.bytes
}

func (q *workQueue) expect(ws ...want) rdma.WC {
	var wc rdma.WC
	for i := range ws {
		wc = q.next(ws[i].text())
		q.judge(ws[i], &wc)
	}
	return wc
}

func (q *workQueue) judge(w want, wc *rdma.WC) {
	if !w.fits(wc) {
		q.e.failf(q.name+": "+w.text(), "%s", q.text(wc))
	}
}

func (q *workQueue) expectOK(from, to int) {
	for n := from; n < to; n++ {
		q.expect(ok(n))
	}
}

func (q *workQueue) completed(how string) {
	q.e.wait(func() string {
		return fmt.Sprintf("%s: %d outstanding requests complete%s", q.name, q.signaled(), how)
	}, func() bool { return q.signaled() == 0 })
}

// flushed waits until nothing that must complete is outstanding, and requires (success)* (flushed)*: work that was done
// before the error, then WR_FLUSH_ERR. Each once and in order is enforced by file. strict forbids the successes.
func (q *workQueue) flushed(strict bool) {
	q.completed(" flushed")
	seen := false
	for i := range q.done {
		wc := &q.done[i]
		switch {
		case wc.Status == rdma.StatusWRFlushErr:
			seen = true
		case wc.Status == rdma.StatusSuccess && !seen && !strict:
		default:
			q.e.failf(q.name+": "+idText(wc.ID)+" work request flushed", "%s", q.text(wc))
		}
	}
	q.done = q.done[:0]
}

// endedBy waits until nothing that must complete is outstanding, and requires (success)* (one failure of the outcome)?
// (flushed)*. The failure may be missing on the local class, where all requests may have succeeded before it was known,
// and where the outcome says so.
func (q *workQueue) endedBy(o outcome) {
	q.completed("")
	legal, failed := o.ack, false
	if q.e.Caps.Completion == rdma.CompletionLocal {
		legal = o.local
	}
	for i := range q.done {
		wc := &q.done[i]
		switch {
		case wc.Status == rdma.StatusSuccess && !failed:
		case !failed && slices.Contains(legal, wc.Status):
			failed = true
			q.e.terminateCode(wc, o.codes)
		case failed && wc.Status == rdma.StatusWRFlushErr:
		case !failed:
			q.e.failf(q.name+": success, or a failure of the outcome", "%s", q.text(wc))
		default:
			q.e.failf(q.name+": work request flushed behind a failure", "%s", q.text(wc))
		}
	}
	if !failed && !o.silent && q.e.Caps.Completion == rdma.CompletionAck {
		q.e.failf(q.name+": a failed request", "only successes")
	}
	q.done = q.done[:0]
}

// outcome is a set of legal traces for a request that the peer refuses, by completion class.
type outcome struct {
	ack, local []rdma.Status
	codes      []uint32 // iWARP: Terminate codes that fit, as 0xLECC
	silent     bool     // endedBy: there may have been nothing left to fail
}

// On the local class the requester may learn of a refusal only through the Terminate, so several statuses are legal; a
// write or send may have succeeded before it arrived (RFC 5040 §5.5).
var lateRefusal = []rdma.Status{rdma.StatusRemAccessErr, rdma.StatusRemOpErr, rdma.StatusRemInvReqErr,
	rdma.StatusRemAbortErr, rdma.StatusWRFlushErr, rdma.StatusFatalErr, rdma.StatusGeneralErr}

// accessRefused: the key, bounds or rights do not allow it (IBTA C9-222.1.1, RFC 5040 §7.2).
func accessRefused(codes ...uint32) outcome {
	return outcome{ack: []rdma.Status{rdma.StatusRemAccessErr}, local: lateRefusal, codes: codes}
}

// requestRefused: length, alignment or the kind of request (IBTA 9.9.3).
func requestRefused(codes ...uint32) outcome {
	return outcome{ack: []rdma.Status{rdma.StatusRemInvReqErr}, local: lateRefusal, codes: codes}
}

// workRefused: the responder's own receive is at fault (IBTA 9.9.3).
func workRefused(codes ...uint32) outcome {
	return outcome{ack: []rdma.Status{rdma.StatusRemOpErr}, local: lateRefusal, codes: codes}
}

// refuses posts wr at end x and requires the outcome, and what has to follow: both QPs in ERR, everything outstanding
// or posted later flushed, in order and once each. Remote memory is settled when it returns.
func (c *conn) refuses(x *end, o outcome, wr rdma.SendWR, more ...rdma.SendWR) {
	c.refusal(x, o, wr, more...)
	c.dead()
}

// refusal is the first half of refuses: the completion of wr, which is posted in one list with more.
func (c *conn) refusal(x *end, o outcome, wr rdma.SendWR, more ...rdma.SendWR) {
	x.post(append([]rdma.SendWR{wr}, more...)...)
	w := want{id: wr.ID, status: o.ack}
	if c.local() {
		w.status = o.local
		if !wr.Op.Responds() {
			w.status = append([]rdma.Status{rdma.StatusSuccess}, w.status...)
		}
	}
	wc := x.s.expect(w)
	c.e.terminateCode(&wc, o.codes)
}

// local reports whether the completion class is that of iWARP.
func (c *conn) local() bool { return c.e.Caps.Completion == rdma.CompletionLocal }

// either adds the flush on the local class, where the connection can go before the receive is judged.
func (c *conn) either(st ...rdma.Status) []rdma.Status {
	if c.local() {
		st = append(st, rdma.StatusWRFlushErr)
	}
	return st
}

// terminateCode compares a soft iWARP stack's Terminate; devices put own numbers into the vendor error.
func (e *Env) terminateCode(wc *rdma.WC, codes []uint32) {
	if e.Caps.Completion != rdma.CompletionLocal || e.Caps.Label != rdma.LabelSoft || wc.VendorErr == 0 ||
		len(codes) == 0 {
		return
	}
	if !slices.Contains(codes, wc.VendorErr) {
		names := ""
		for _, c := range codes {
			names += fmt.Sprintf(" %d/%d/%02x", c>>12, c>>8&15, c&255)
		}
		e.failf("Terminate"+names, "%#04x", wc.VendorErr)
	}
}

func (c *conn) dead() {
	for _, x := range []*end{c.a, c.b} {
		x.waitState(rdma.QPErr)
	}
	for _, x := range []*end{c.a, c.b} {
		x.s.flushed(false)
		x.r.flushed(false)
		x.flushesLater()
	}
}
