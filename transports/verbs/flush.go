//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"context"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	// goodbyeTimeout bounds what Close does for the peer's sake.
	goodbyeTimeout = time.Second
	// flushTimeout is how long a device may take for the next flushed completion.
	flushTimeout = 500 * time.Millisecond
	// unmarkedTimeout is the same where no drain marker tells the end.
	unmarkedTimeout = 30 * time.Millisecond
)

// Disconnect waits until the device has done what was posted, says goodbye, and moves the QP to ERR.
func (q *qp) Disconnect(ctx context.Context) error {
	fail := func(err error) error { return &rdma.OpError{Op: "disconnect", Object: q.object(), Err: err} }
	q.mu.Lock()
	peer, closed := q.peer, q.isClosed()
	q.mu.Unlock()
	switch {
	case closed:
		return fail(rdma.ErrClosed)
	case peer == nil:
		return fail(rdma.ErrState)
	}
	ctx, cancel := withTimeout(ctx)
	defer cancel()
	err := q.quiesce(ctx)
	q.mu.Lock()
	first := !q.over
	q.over = true
	q.mu.Unlock()
	if first {
		peer.bye(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.isClosed() {
		q.enterErr()
	}
	if err != nil {
		return fail(err)
	}
	return nil
}

// quiesce waits until the send queue is empty. Unsignalled requests at its end never show, so a drain marker follows
// them where completions mean that the peer has the data; on iWARP the TCP stream keeps the order of data and goodbye.
func (q *qp) quiesce(ctx context.Context) error {
	marker := false
	for wait := 20 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		q.send.mu.Lock()
		if !q.send.closed {
			q.send.collect()
		}
		q.send.mu.Unlock()
		q.sendMu.Lock()
		if q.isClosed() || q.now() != rdma.QPRTS {
			q.sendMu.Unlock()
			return nil
		}
		var signaled C.int
		taken := C.vb_outstanding(&q.c.sq, &signaled)
		idle := taken == 0 || signaled == 0 && (q.dev.iwarp || marker && q.c.sq.drained != 0)
		if !idle && signaled == 0 && !marker {
			marker = true
			if C.vb_drain_write(q.c) != 0 {
				idle = true // nothing more can be learnt
			}
		}
		q.sendMu.Unlock()
		if idle {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(wait)
		if q.State() != rdma.QPRTS {
			return nil
		}
	}
}

func (q *qp) gone(orderly bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over || q.isClosed() {
		q.over = true
		return
	}
	q.over = true
	q.enterErr()
	if orderly {
		q.dev.raise(rdma.EventPeerDisconnect, q.num, 0)
	} else {
		q.dev.raise(rdma.EventQPFatal, q.num, 0)
	}
}

// Close destroys the QP. Outstanding work completes flushed before it returns.
func (q *qp) Close() error {
	q.mu.Lock()
	if q.shut.Swap(true) {
		q.mu.Unlock()
		return nil
	}
	close(q.ended)
	q.abandon()
	peer, over := q.peer, q.over
	q.over = true
	q.mu.Unlock()
	if peer != nil && !over {
		ctx, cancel := context.WithTimeout(context.Background(), goodbyeTimeout)
		peer.bye(ctx)
		cancel()
	}
	q.mu.Lock()
	q.enterErr()
	q.mu.Unlock()
	// Whoever posts now finds the QP closed.
	q.sendMu.Lock()
	q.sendMu.Unlock()
	q.recvMu.Lock()
	q.recvMu.Unlock()
	q.flush()
	err := q.destroy()
	if peer != nil {
		peer.close()
	}
	q.send.use(-1)
	q.recv.use(-1)
	if q.srq != nil {
		q.srq.use(-1)
	}
	q.dev.leavePD(q.pd)
	return err
}

// lockCQs locks in an order that all agree on.
func (q *qp) lockCQs() (unlock func()) {
	a, b := q.send, q.recv
	if a == b {
		a.mu.Lock()
		return a.mu.Unlock
	}
	if a.id > b.id {
		a, b = b, a
	}
	a.mu.Lock()
	b.mu.Lock()
	return func() { b.mu.Unlock(); a.mu.Unlock() }
}

// flush collects a QP's completions in ERR until its queues are empty or the device says nothing more.
func (q *qp) flush() {
	q.c.sq.drained, q.c.rq.drained = 0, 0
	drained := false
	limit := flushTimeout
	last := time.Now()
	for wait := 10 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		unlock := q.lockCQs()
		n := q.send.collect()
		if q.recv != q.send {
			n += q.recv.collect()
		}
		var signaledS, signaledR C.int
		sends := C.vb_outstanding(&q.c.sq, &signaledS)
		recvs := C.vb_outstanding(&q.c.rq, &signaledR)
		unlock()
		if (sends == 0 || q.c.sq.drained != 0) && (recvs == 0 || q.c.rq.drained != 0) {
			return
		}
		if !drained {
			drained = true
			f := &q.dev.found
			if C.vb_drain(q.c, flag(sends > 0 && f.flushSend), flag(recvs > 0 && f.flushRecv)) != 0 || !f.flushSend ||
				!f.flushRecv {
				limit = unmarkedTimeout // no drain marker: what comes, comes
			}
			q.kick()
		}
		if n > 0 {
			last, wait = time.Now(), 10*time.Microsecond
		} else if time.Since(last) > limit {
			return
		}
		time.Sleep(wait)
	}
}

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

// destroy completes flushed what the device never will, and ends the queue pair.
func (q *qp) destroy() error {
	unlock := q.lockCQs()
	for _, side := range []struct {
		queue *C.struct_vb_queue
		cq    *cq
	}{{&q.c.sq, q.send}, {&q.c.rq, q.recv}} {
		var wc C.struct_vb_wc
		for C.vb_leftover(side.queue, &wc) != 0 {
			side.cq.keep(rdma.WC{ID: uint64(wc.id), QPNum: q.num, Status: rdma.Status(wc.status),
				Opcode: rdma.WCOpcode(wc.opcode)})
			side.cq.woken = true
		}
		side.cq.letGo(side.queue)
	}
	C.vb_unlist(q.c, q.dev.table)
	unlock()
	q.send.waiting.wake()
	q.recv.waiting.wake()
	q.dev.mu.Lock()
	defer q.dev.mu.Unlock()
	delete(q.dev.qps, q.num)
	if rc := C.vb_destroy_qp(q.c); rc != 0 {
		return &rdma.OpError{Op: "close", Object: q.object(), Err: errno(rc)}
	}
	return nil
}
