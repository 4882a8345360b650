//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// link is what a connection has beside its QPs: a TCP connection of the exchange, or an ID of rdma_cm.
type link interface {
	// bye tells the peer that the connection ends in order.
	bye(ctx context.Context)
	// close frees what there is. Idempotent.
	close()
}

type qp struct {
	dev  *Device
	num  uint32
	id   uint64 // as num, but never used again
	cfg  rdma.QPConfig
	send *cq
	recv *cq
	srq  *srq
	pd   *domain
	c    *C.struct_vb_qp

	ops    rdma.OpSet
	maxMsg uint64

	state    atomic.Uint32 // rdma.QPState, as far as is known here
	shut     atomic.Bool   // Close has begun
	noReads  atomic.Bool   // the connection has ORD 0
	draining atomic.Bool   // SQD was asked for and not reported yet

	sendMu sync.Mutex // posts to the send queue
	recvMu sync.Mutex // posts to the receive queue

	mu    sync.Mutex // changes of state
	tells bool       // the device tells the QP's state
	busy  *attempt   // Connect or Accept at work, or nil
	peer  link       // nil before the connection is made
	over  bool       // the end of the connection was announced

	ended chan struct{} // closed by Close

	discarded chan struct{} // closed when the ID of a failed connect is destroyed; nil without
}

var qpSerial atomic.Uint64

// attempt is a Connect or Accept at work on a QP. Close cancels it and waits.
type attempt struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// NewQP makes a queue pair in INIT.
func (d *Device) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	q, err := d.newQP(cfg, false)
	if err != nil {
		return nil, failed(opCreateQP, d.dev, err)
	}
	return q, nil
}

func (d *Device) newQP(cfg rdma.QPConfig, raw bool) (*qp, error) {
	send, ok1 := cfg.SendCQ.(*cq)
	recv, ok2 := cfg.RecvCQ.(*cq)
	if !ok1 || !ok2 || send.dev != d || recv.dev != d {
		return nil, fmt.Errorf("completion queues of this device are required: %w", rdma.ErrInvalid)
	}
	cfg.SendDepth, cfg.RecvDepth = cmp.Or(cfg.SendDepth, 1), cmp.Or(cfg.RecvDepth, 1)
	if cfg.SRQ != nil {
		cfg.RecvDepth = 1
	}
	if c := &d.caps; cfg.SendDepth < 0 || cfg.RecvDepth < 0 || cfg.SendDepth > c.MaxQPWR || cfg.RecvDepth > c.MaxQPWR ||
		cfg.MaxInline < 0 || cfg.MaxInline > c.MaxInline {
		return nil, fmt.Errorf("send depth %d, receive depth %d, inline %d; the limits are %d, %d, %d: %w",
			cfg.SendDepth, cfg.RecvDepth, cfg.MaxInline, c.MaxQPWR, c.MaxQPWR, c.MaxInline, rdma.ErrInvalid)
	}
	// The mask is no registration: remote write alone is fine.
	if err := (cfg.Access | rdma.LocalWrite).Validate(); err != nil {
		return nil, err
	}
	q := &qp{dev: d, id: qpSerial.Add(1), cfg: cfg, ended: make(chan struct{}), send: send, recv: recv, ops: d.caps.Ops,
		maxMsg: d.caps.MaxMsg}
	var undo []func()
	fail := func(err error) (*qp, error) {
		for i := len(undo) - 1; i >= 0; i-- {
			undo[i]()
		}
		return nil, err
	}
	if cfg.SRQ != nil {
		s, ok := cfg.SRQ.(*srq)
		if !ok || s.dev != d {
			return nil, fmt.Errorf("shared receive queue of another device: %w", rdma.ErrInvalid)
		}
		if err := s.use(1); err != nil {
			return nil, err
		}
		undo = append(undo, func() { s.use(-1) })
		q.srq = s
	}
	p, err := d.usePD(cfg.PD)
	if err != nil {
		return fail(err)
	}
	q.pd = p
	undo = append(undo, func() { d.leavePD(p) })
	for _, c := range []*cq{send, recv} {
		if err := c.use(1); err != nil {
			return fail(err)
		}
		undo = append(undo, func() { c.use(-1) })
	}
	if err := d.createQP(q, raw); err != nil {
		return fail(err)
	}
	return q, nil
}

func (d *Device) createQP(q *qp, raw bool) error {
	hw := d.queueCap(q.cfg.SendDepth, q.cfg.RecvDepth, q.cfg.MaxInline)
	var shared *C.struct_vb_srq
	if q.srq != nil {
		shared, hw.max_recv_wr, hw.max_recv_sge = q.srq.c, 0, 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	var rc C.int
	q.c = C.vb_create_qp(q.pd.pd, d.table, q.send.c, q.recv.c, shared, C.uint32_t(q.cfg.SendDepth),
		C.uint32_t(q.cfg.RecvDepth), &hw, flag(q.cfg.SigAll), C.uint32_t(d.found.toldFrom), flag(d.iwarp),
		C.uint64_t(q.id), &rc)
	if q.c == nil {
		return errno(rc)
	}
	if !raw {
		if err := toInit(q.c.qp, d.port.num, q.accessFlags()); err != nil {
			C.vb_unlist(q.c, d.table)
			C.vb_destroy_qp(q.c)
			return err
		}
		q.state.Store(uint32(rdma.QPInit)) // RESET is 0
	}
	q.num = uint32(q.c.qp.qp_num)
	d.qps[q.num] = q
	return nil
}

func (q *qp) accessFlags() C.int {
	a := q.cfg.Access
	if a == 0 {
		a = rdma.RemoteWrite | rdma.RemoteRead | rdma.RemoteAtomic
	}
	return accessFlags(a|rdma.LocalWrite, q.ops)
}

func (q *qp) Num() uint32    { return q.num }
func (q *qp) object() string { return fmt.Sprintf("qp %d", q.num) }

// Drain holds requests that were not begun (SQD).
func (q *qp) Drain() error {
	return q.command("drain", rdma.QPRTS, rdma.QPSQD, func() error {
		q.draining.Store(true)
		return toSQD(q.c.qp)
	})
}

func (q *qp) Resume() error {
	return q.command("resume", rdma.QPSQD, rdma.QPRTS, func() error {
		return retried(func() error { return fromSQD(q.c.qp) })
	})
}

func (q *qp) command(op string, from, to rdma.QPState, do func() error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	err := rdma.ErrNotSupported
	switch {
	case q.isClosed():
		err = rdma.ErrClosed
	case !q.dev.caps.Features.Has(rdma.FeatSQD):
	case q.refresh() != from:
		err = rdma.ErrState
	default:
		if err = do(); err == nil {
			q.state.CompareAndSwap(uint32(from), uint32(to))
		}
	}
	if err != nil {
		return &rdma.OpError{Op: op, Object: q.object(), Err: err}
	}
	return nil
}

// Fail moves the QP to ERR. The peer of a RoCE connection is not told.
func (q *qp) Fail() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isClosed() {
		return &rdma.OpError{Op: "fail", Object: q.object(), Err: rdma.ErrClosed}
	}
	q.abandon()
	q.enterErr()
	return nil
}

// abandon gives up a connection that is being made. On iWARP it waits until the kernel's connection manager has
// released the QP: siw counts its references wrong when a QP leaves INIT or is destroyed under a connect. The caller
// holds q.mu, which is free meanwhile.
func (q *qp) abandon() {
	for q.busy != nil {
		a := q.busy
		q.mu.Unlock()
		a.cancel()
		<-a.done
		q.mu.Lock()
	}
	if gone := q.discarded; gone != nil && q.dev.iwarp {
		q.mu.Unlock()
		<-gone
		q.mu.Lock()
	}
}

func (q *qp) isClosed() bool { return q.shut.Load() }
