package memdev

import (
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// rawQP is a qp that is led through its states by hand, and its own peer.
type rawQP struct{ *qp }

// NewRawQP makes a queue pair in RESET.
func (d *Device) NewRawQP(cfg rdma.QPConfig) (rdma.RawQP, error) {
	d.fab.lock()
	defer d.fab.unlock()
	q, err := d.newQP(cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "create qp", Object: d.host, Err: err}
	}
	q.state = rdma.QPReset
	return rawQP{q}, nil
}

const rawReads = 4

// Modify moves the QP. Nothing is changed by what is refused (man ibv_modify_qp, NOTES).
func (q rawQP) Modify(to rdma.QPState, given rdma.QPAttrs) error {
	return q.command("modify", func() error {
		needs, takes := rdma.AttrsOf(q.state, to)
		switch {
		case !rdma.CanTransition(q.state, to):
			return fmt.Errorf("%s to %s: %w", q.state, to, rdma.ErrInvalid)
		case needs&^given != 0:
			return fmt.Errorf("%s to %s without %s: %w", q.state, to, needs&^given, rdma.ErrInvalid)
		case given&^(needs|takes) != 0:
			return fmt.Errorf("%s to %s with %s: %w", q.state, to, given&^(needs|takes), rdma.ErrInvalid)
		}
		switch to {
		case rdma.QPErr:
			q.enterErr()
			return nil
		case rdma.QPReset:
			q.forget()
		case rdma.QPRTR:
			q.peer, q.ird = q.qp, rawReads
		case rdma.QPRTS:
			q.ord, q.rnr = rawReads, rnrForever
		}
		q.to(to)
		q.run()
		return nil
	})
}

// forget discards what is outstanding; completions that were not polled stay (IBTA 10.3.1.1).
func (q *qp) forget() {
	q.unstall()
	q.sq.used -= int(q.sq.tail-q.sq.head) + q.sq.unsignaled
	q.sq.unsignaled, q.sq.pending = 0, 0
	q.sq.head, q.sq.next = q.sq.tail, q.sq.tail
	if q.srq == nil {
		q.rq.used -= q.rq.count + q.rq.unsignaled
		q.rq.unsignaled, q.rq.count = 0, 0
	}
	q.peer, q.ird, q.ord, q.rnr = nil, 0, 0, 0
	q.drained = false
}
