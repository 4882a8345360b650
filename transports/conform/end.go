package conform

import (
	"errors"
	"fmt"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type end struct {
	e      *Env
	name   string // a or b, with a number from the second connection on
	dev    rdma.Device
	pd     rdma.PD
	qp     rdma.QP
	num    uint32
	box    *cqBox
	s, r   *workQueue
	srq    *sharedQueue // instead of r's own receives
	depth  int
	sigAll bool
	gone   bool // closed by the case
}

func (x *end) post(wrs ...rdma.SendWR) {
	if n, err := x.tryPost(wrs...); err != nil {
		x.e.failf(fmt.Sprintf("%s: post of %d send requests taken", x.name, len(wrs)), "%d taken, then %v", n, err)
	}
}

func (x *end) tryPost(wrs ...rdma.SendWR) (int, error) {
	// They are on record before the post: a provider may complete them at once.
	base := len(x.s.open)
	for i := range wrs {
		w := &wrs[i]
		p := pending{id: w.ID, op: w.Op.Completes(), unsignaled: w.Flags&rdma.Signaled == 0 && !x.sigAll}
		if w.Op.Responds() {
			p.bytes, p.fetch = uint32(w.Len()), true
		}
		x.s.open = append(x.s.open, p)
	}
	n, err := x.qp.PostSend(wrs)
	x.e.checkCount("post send", n, len(wrs), err)
	x.s.open = x.s.open[:base+n]
	return n, err
}

func (x *end) postRecv(wrs ...rdma.RecvWR) {
	if n, err := x.tryRecv(wrs...); err != nil {
		x.e.failf(fmt.Sprintf("%s: post of %d receives taken", x.name, len(wrs)), "%d taken, then %v", n, err)
	}
}

func (x *end) tryRecv(wrs ...rdma.RecvWR) (int, error) {
	base := len(x.r.open)
	for i := range wrs {
		x.r.open = append(x.r.open, pending{id: wrs[i].ID})
	}
	n, err := x.qp.PostRecv(wrs)
	x.e.checkCount("post recv", n, len(wrs), err)
	x.r.open = x.r.open[:base+n]
	return n, err
}

// checkCount enforces the post contract: fewer than all always with the reason (ibv_post_send(3), bad_wr).
func (e *Env) checkCount(what string, n, all int, err error) {
	if n < 0 || n > all || (n < all) != (err != nil) {
		e.failf(what+" returns n < len(wrs) exactly when it returns an error", "n=%d of %d, error %v", n, all, err)
	}
}

func (x *end) push(wr rdma.SendWR) {
	x.e.waitFor(x.name+": room in the send queue", func() bool { return len(x.s.open) < x.depth })
	x.post(wr)
}

func (x *end) waitState(s rdma.QPState) {
	x.e.waitFor(x.name+" reaches "+s.String(), func() bool { return x.qp.State() == s })
}

func (x *end) state(s rdma.QPState) {
	if g := x.qp.State(); g != s {
		x.e.failf(x.name+" in "+s.String(), "%s", g)
	}
}

// flushesLater posts to both queues of a QP in ERR: taken, and completed flushed (IBTA C10-96, C10-97).
func (x *end) flushesLater() {
	x.post(send(drainID))
	x.s.expect(sendFails(drainID, rdma.StatusWRFlushErr))
	if x.r.shared == nil {
		x.postRecv(recv(drainID))
		x.r.expect(recvFails(drainID, rdma.StatusWRFlushErr))
	}
}

func (x *end) sleep() { x.box.asleep = true }
func (x *end) wake()  { x.box.asleep = false }

// close destroys the QP now. Its completions stay pollable.
func (x *end) close() {
	x.gone = true
	x.e.must("close "+x.name, x.qp.Close())
}

// localFault posts a request that is wrong on this side. Legal: an immediate refusal, or LOC_PROT_ERR, or another of
// the given statuses, and the QP in ERR. It reports whether the QP still works.
func (x *end) localFault(wr rdma.SendWR, also ...rdma.Status) (alive bool) {
	n, err := x.tryPost(wr)
	if err != nil {
		if errors.Is(err, rdma.ErrQueueFull) || errors.Is(err, rdma.ErrClosed) {
			x.e.failf("refusal that names the argument", "%v", err)
		}
		x.state(rdma.QPRTS)
		return true
	}
	if n != 1 {
		x.e.failf("one request taken", "%d", n)
	}
	x.s.expect(want{id: wr.ID, status: append([]rdma.Status{rdma.StatusLocProtErr}, also...)})
	x.waitState(rdma.QPErr)
	return false
}

// Work request builders. Sends are signalled; the modifiers below change that.

func recv(n int, g ...rdma.SGE) rdma.RecvWR {
	w := rdma.RecvWR{ID: recvID(n), NumSGE: uint8(len(g))}
	copy(w.SGE[:], g)
	return w
}

func request(op rdma.Opcode, n int, t target, g []rdma.SGE) rdma.SendWR {
	w := rdma.SendWR{ID: sendID(n), Op: op, Flags: rdma.Signaled, RemoteAddr: t.addr, RKey: t.key,
		NumSGE: uint8(len(g))}
	copy(w.SGE[:], g)
	return w
}

func send(n int, g ...rdma.SGE) rdma.SendWR { return request(rdma.OpSend, n, target{}, g) }

func sendImm(n int, imm uint32, g ...rdma.SGE) rdma.SendWR {
	w := request(rdma.OpSendImm, n, target{}, g)
	w.Imm = imm
	return w
}

func sendInv(n int, key uint32, g ...rdma.SGE) rdma.SendWR {
	w := request(rdma.OpSendInv, n, target{}, g)
	w.InvKey = key
	return w
}

func localInv(n int, key uint32) rdma.SendWR {
	w := request(rdma.OpLocalInv, n, target{}, nil)
	w.InvKey = key
	return w
}

func write(n int, t target, g ...rdma.SGE) rdma.SendWR { return request(rdma.OpWrite, n, t, g) }

func writeImm(n int, imm uint32, t target, g ...rdma.SGE) rdma.SendWR {
	w := request(rdma.OpWriteImm, n, t, g)
	w.Imm = imm
	return w
}

func read(n int, t target, g ...rdma.SGE) rdma.SendWR { return request(rdma.OpRead, n, t, g) }

func fetchAdd(n int, t target, add uint64, g ...rdma.SGE) rdma.SendWR {
	w := request(rdma.OpFetchAdd, n, t, g)
	w.CompareAdd = add
	return w
}

func cmpSwap(n int, t target, old, new uint64, g ...rdma.SGE) rdma.SendWR {
	w := request(rdma.OpCmpSwap, n, t, g)
	w.CompareAdd, w.Swap = old, new
	return w
}

func unsignaled(w rdma.SendWR) rdma.SendWR { w.Flags &^= rdma.Signaled; return w }
func fenced(w rdma.SendWR) rdma.SendWR     { w.Flags |= rdma.Fence; return w }
func solicited(w rdma.SendWR) rdma.SendWR  { w.Flags |= rdma.Solicited; return w }
func inline(w rdma.SendWR) rdma.SendWR     { w.Flags |= rdma.Inline; return w }

const soon = 2 * time.Second
