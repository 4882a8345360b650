package memdev

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// slots counts places, each free again when its or a later completion of the queue is polled (IBTA 10.7.3.1).
type slots struct {
	depth, used int
	unsignaled  int // ended without a completion since the last one
}

type phase uint8

const (
	queued  phase = iota // not looked at
	started              // sent once, the peer had no receive
	waiting              // executed; the answer is on its way
	done                 // finished; its completion waits for its turn
)

type sendEntry struct {
	wr    rdma.SendWR
	due   time.Duration // waiting: when the answer is here
	old   uint64        // atomics: the value fetched
	phase phase
}

// sendQueue is a ring: those before next have been executed, those before head have completed.
type sendQueue struct {
	slots
	ring             []sendEntry
	inline           []byte // MaxInline bytes an entry
	head, next, tail uint64
	pending          int // entries in phase waiting
}

func (s *sendQueue) at(i uint64) *sendEntry { return &s.ring[i%uint64(len(s.ring))] }

// qp is one end of a connection. Everything is guarded by the fabric's lock.
type qp struct {
	dev       *Device
	num       uint32
	pd        rdma.PD
	access    rdma.Access
	sigAll    bool
	maxInline int

	state  rdma.QPState
	closed bool
	late   bool // flush withheld by FaultLateFlush
	sq     sendQueue
	rq     *recvQueue // its own, or the SRQ's
	srq    *srq
	sendCQ *cq
	recvCQ *cq

	peer     *qp
	dialing  *connRequest // Connect in progress
	told     bool         // the end of the connection was announced here
	ird, ord int
	rnr      int

	stalled  bool          // the oldest request waits for a receive at the peer
	rnrUntil time.Duration // when it gives up; 0 never
	timed    bool          // listed in fab.timed
	drained  bool          // SQD: EventSQDrained was raised

	watch     chan struct{} // token when retired may have passed watchMark
	watchMark uint64
}

const rnrForever = 7

// NewQP makes a queue pair in INIT.
func (d *Device) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	d.fab.lock()
	defer d.fab.unlock()
	q, err := d.newQP(cfg)
	if err != nil {
		return nil, &rdma.OpError{Op: "create qp", Object: d.host, Err: err}
	}
	return q, nil
}

func (d *Device) newQP(cfg rdma.QPConfig) (*qp, error) {
	if err := d.alive(); err != nil {
		return nil, err
	}
	depth := func(n int) (int, bool) { return max(n, 1), n >= 0 && n <= caps.MaxQPWR }
	sendDepth, ok1 := depth(cfg.SendDepth)
	recvDepth, ok2 := depth(cfg.RecvDepth)
	if !ok1 || (!ok2 && cfg.SRQ == nil) {
		return nil, fmt.Errorf("depths %d and %d: %w", cfg.SendDepth, cfg.RecvDepth, rdma.ErrInvalid)
	}
	if cfg.MaxInline < 0 || cfg.MaxInline > caps.MaxInline {
		return nil, fmt.Errorf("%d bytes inline: %w", cfg.MaxInline, rdma.ErrInvalid)
	}
	// The mask is no registration: remote write alone is fine.
	if err := (cfg.Access | rdma.LocalWrite).Validate(); err != nil {
		return nil, err
	}
	sendCQ, err := d.ownCQ(cfg.SendCQ)
	if err != nil {
		return nil, err
	}
	recvCQ, err := d.ownCQ(cfg.RecvCQ)
	if err != nil {
		return nil, err
	}
	var shared *srq
	if cfg.SRQ != nil {
		shared, _ = cfg.SRQ.(*srq)
		if shared == nil || shared.dev != d {
			return nil, fmt.Errorf("srq of another device: %w", rdma.ErrInvalid)
		}
		if shared.closed {
			return nil, fmt.Errorf("srq: %w", rdma.ErrClosed)
		}
	}
	if !d.use(cfg.PD) {
		return nil, fmt.Errorf("pd %d: %w", cfg.PD, rdma.ErrInvalid)
	}
	d.fab.lastQP++
	q := &qp{
		dev: d, num: d.fab.lastQP, pd: cfg.PD, access: cfg.Access, sigAll: cfg.SigAll, maxInline: cfg.MaxInline,
		state: rdma.QPInit, sendCQ: sendCQ, recvCQ: recvCQ, srq: shared, watch: make(chan struct{}, 1),
		sq: sendQueue{slots: slots{depth: sendDepth}, ring: make([]sendEntry, sendDepth),
			inline: make([]byte, sendDepth*cfg.MaxInline)},
	}
	if q.access == 0 {
		q.access = ^rdma.Access(0)
	}
	if shared != nil {
		q.rq = &shared.recvQueue
		shared.users++
	} else {
		q.rq = newRecvQueue(cfg.PD, recvDepth)
	}
	sendCQ.users++
	recvCQ.users++
	d.qps = append(d.qps, q)
	return q, nil
}

func (q *qp) Num() uint32 { return q.num }

func (q *qp) State() rdma.QPState {
	q.dev.fab.lock()
	defer q.dev.fab.unlock()
	q.dev.fab.drive()
	return q.state
}

func (q *qp) object() string { return fmt.Sprintf("qp %d", q.num) }

// to moves along an edge of the table; any other move is a bug of this package.
func (q *qp) to(s rdma.QPState) {
	if !rdma.CanTransition(q.state, s) {
		panic(fmt.Sprintf("memdev: %s: %v to %v", q.object(), q.state, s))
	}
	q.state = s
}

// Drain holds new sends back; those begun finish, then EventSQDrained is raised (IBTA 10.3.1.5).
func (q *qp) Drain() error {
	return q.command("drain", func() error {
		if q.state != rdma.QPRTS {
			return rdma.ErrState
		}
		q.to(rdma.QPSQD)
		q.drained = false
		q.update()
		return nil
	})
}

// Resume lets the held sends go.
func (q *qp) Resume() error {
	return q.command("resume", func() error {
		if q.state != rdma.QPSQD {
			return rdma.ErrState
		}
		q.to(rdma.QPRTS)
		q.run()
		return nil
	})
}

// Fail moves the QP to ERR. The peer is not told.
func (q *qp) Fail() error {
	return q.command("fail", func() error {
		q.hangUp(rdma.ErrState)
		q.enterErr()
		return nil
	})
}

func (q *qp) command(op string, do func() error) error {
	f := q.dev.fab
	f.lock()
	defer f.unlock()
	f.drive()
	err := rdma.ErrClosed
	if !q.closed {
		err = do()
	}
	if err != nil {
		return &rdma.OpError{Op: op, Object: q.object(), Err: err}
	}
	return nil
}

// Disconnect waits until everything posted before it has completed or ctx (10 s without a deadline) ends, then moves
// both sides to ERR. What was not sent in time completes flushed and the context's error is returned.
func (q *qp) Disconnect(ctx context.Context) error {
	ctx, cancel := withLimit(ctx)
	defer cancel()
	return q.command("disconnect", func() error {
		if q.peer == nil {
			return rdma.ErrState
		}
		mark := q.sq.tail
		q.watchMark = max(q.watchMark, mark)
		err := q.dev.fab.await(ctx, q.watch, func() bool {
			return q.state == rdma.QPErr || q.sq.head >= mark
		})
		signal(q.watch) // another Disconnect may wait for the same
		if !q.closed {
			q.part()
		}
		return err
	})
}

// part ends the connection in order; sends that wait for a receive are flushed rather than tried once more.
func (q *qp) part() {
	q.unstall()
	if q.peer != nil {
		q.peer.unstall()
		q.tell(q.peer)
	}
	q.enterErr()
}

// tell announces the end to the peer, once. Who ended the connection needs no news of it, and a dead device sends none.
func (q *qp) tell(p *qp) {
	q.told = true
	if p.told || p.closed || q.dev.dead {
		return
	}
	p.told = true
	if !p.dev.dead {
		p.dev.raise(rdma.EventPeerDisconnect, p.num)
		p.enterErr()
	}
}

// Close destroys the QP. Outstanding work completes flushed; the peer is told.
func (q *qp) Close() error {
	f := q.dev.fab
	f.lock()
	defer f.unlock()
	if q.closed {
		return nil
	}
	q.hangUp(rdma.ErrClosed)
	q.part()
	q.closed = true
	q.sendCQ.users--
	q.recvCQ.users--
	if q.srq != nil {
		q.srq.users--
	}
	q.dev.release(q.pd)
	q.dev.qps = slices.DeleteFunc(q.dev.qps, func(o *qp) bool { return o == q })
	return nil
}
