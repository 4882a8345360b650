//go:build cgo && linux

package verbs

// #cgo nocallback vb_pingpong
// #cgo noescape vb_pingpong
// #cgo noescape vb_post_send
// #cgo nocallback vb_post_send
// #cgo noescape vb_post_recv
// #cgo nocallback vb_post_recv
// #cgo noescape vb_hold_send
// #cgo nocallback vb_hold_send
// #cgo noescape vb_hold_recv
// #cgo nocallback vb_hold_recv
// #include "shim.h"
import "C"

import (
	"syscall"
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

const (
	allFlags   = rdma.Signaled | rdma.Fence | rdma.Solicited | rdma.Inline
	inlineOps  = rdma.OpSet(1<<rdma.OpSend | 1<<rdma.OpSendImm | 1<<rdma.OpWrite | 1<<rdma.OpWriteImm)
	atomicSize = 8
)

// PostSend hands the whole slice to the device in one call, with one doorbell a 64 requests.
func (q *qp) PostSend(wrs []rdma.SendWR) (int, error) {
	n, err := q.checkSend(wrs)
	if n == 0 {
		if err == nil || q.isClosed() {
			return 0, q.postable()
		}
		return 0, err
	}
	q.sendMu.Lock()
	if why := q.postable(); why != nil {
		q.sendMu.Unlock()
		return 0, why
	}
	list := (*C.struct_vb_send)(unsafe.Pointer(unsafe.SliceData(wrs)))
	var p C.struct_vb_posted
	if q.dev.found.flushSend || q.now() != rdma.QPErr {
		p = C.vb_post_send(q.c, list, C.int(n))
	} else {
		p = C.vb_hold_send(q.c, list, C.int(n))
		q.send.hold(&q.c.sq, false)
	}
	q.sendMu.Unlock()
	if p.err != 0 {
		err = q.sendError(p.err)
	}
	return int(p.n), err
}

func (q *qp) checkSend(wrs []rdma.SendWR) (int, error) {
	for i := range wrs {
		wr := &wrs[i]
		// The plain signalled or unsignalled send or write of one element.
		if wr.Flags&^rdma.Signaled == 0 && wr.NumSGE <= 1 && wr.Op <= rdma.OpWrite && wr.Op != rdma.OpSendInv &&
			q.ops.Has(wr.Op) && uint64(wr.SGE[0].Len) <= q.maxMsg {
			continue
		}
		if err := q.checkOne(wr); err != nil {
			return i, err
		}
	}
	return len(wrs), nil
}

// checkOne refuses what the device might take in another sense, or refuse too late.
func (q *qp) checkOne(wr *rdma.SendWR) error {
	if !q.ops.Has(wr.Op) {
		if int(wr.Op) >= rdma.NumOpcodes {
			return rdma.ErrInvalid
		}
		return rdma.ErrNotSupported
	}
	if wr.Flags&^allFlags != 0 || int(wr.NumSGE) > q.dev.caps.MaxSGE ||
		wr.Op == rdma.OpRead && int(wr.NumSGE) > q.dev.caps.MaxReadSGE {
		return rdma.ErrInvalid
	}
	if wr.Op.Responds() && q.noReads.Load() {
		return rdma.ErrInvalid // ORD 0: devices would wait for ever, or not care (siw)
	}
	size := wr.Len()
	if size > q.maxMsg || wr.Op.IsAtomic() && (wr.NumSGE != 1 || size != atomicSize) {
		return rdma.ErrInvalid
	}
	if wr.Flags&rdma.Inline == 0 {
		return nil
	}
	if !q.dev.caps.Features.Has(rdma.FeatInline) {
		return rdma.ErrNotSupported
	}
	if !inlineOps.Has(wr.Op) || size > uint64(q.cfg.MaxInline) {
		return rdma.ErrInvalid // ibv_post_send(3): inline is for send and write
	}
	for i := range wr.SGE[:wr.NumSGE] {
		// No key is checked, so an address alone is not trusted.
		if s := &wr.SGE[i]; s.Len > 0 && rdma.BufferAt(s.Addr, int(s.Len)) == nil {
			return rdma.ErrInvalid
		}
	}
	return nil
}

func (q *qp) postable() error {
	switch s := q.now(); {
	case q.isClosed():
		return rdma.ErrClosed
	case !s.CanPostSend():
		return rdma.ErrState // IBTA C10-96
	}
	return nil
}

// sendError names what the device answered. A device that takes no work in ERR (siw) answers in many ways.
func (q *qp) sendError(rc C.int) error {
	if rc != C.int(syscall.ENOMEM) && q.now() == rdma.QPErr {
		return rdma.ErrState
	}
	return postError(rc)
}

func postError(rc C.int) error {
	switch syscall.Errno(rc) {
	case syscall.ENOMEM, syscall.ENOSPC, syscall.EAGAIN:
		return rdma.ErrQueueFull
	case syscall.EINVAL, syscall.EFAULT, syscall.EMSGSIZE:
		return rdma.ErrInvalid
	case syscall.ENOTCONN, syscall.ECONNRESET, syscall.EPIPE:
		return rdma.ErrState
	case syscall.EOPNOTSUPP, syscall.ENOSYS:
		return rdma.ErrNotSupported
	}
	return &rdma.OpError{Op: "post", Err: errno(rc)}
}

func (q *qp) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if q.srq != nil {
		return 0, rdma.ErrInvalid // ibv_post_recv(3)
	}
	n, err := checkRecv(wrs, q.dev.caps.MaxSGE)
	if n == 0 && !q.isClosed() {
		return 0, err
	}
	q.recvMu.Lock()
	if q.isClosed() {
		q.recvMu.Unlock()
		return 0, rdma.ErrClosed
	}
	list := (*C.struct_vb_recv)(unsafe.Pointer(unsafe.SliceData(wrs)))
	var p C.struct_vb_posted
	switch dead := q.now() == rdma.QPErr; {
	case dead && !q.dev.found.flushRecv:
		p = C.vb_hold_recv(q.c, list, C.int(n))
		q.recv.hold(&q.c.rq, false)
	default:
		p = C.vb_post_recv(q.c, list, C.int(n))
		if dead {
			q.kick()
		}
	}
	q.recvMu.Unlock()
	if p.err != 0 {
		err = q.sendError(p.err)
	}
	return int(p.n), err
}

func checkRecv(wrs []rdma.RecvWR, maxSGE int) (int, error) {
	for i := range wrs {
		if int(wrs[i].NumSGE) > maxSGE {
			return i, rdma.ErrInvalid
		}
	}
	return len(wrs), nil
}

// PingPong holds the locks of queue pair and completion queue while it looks: Looks bound how long others wait.
func (q *qp) PingPong(vs []rdma.PingPongStep, dst []rdma.WC) (int, error) {
	c := q.send
	if c != q.recv || q.srq != nil || len(dst) == 0 {
		return 0, rdma.ErrInvalid
	}
	for i := range vs {
		v := &vs[i]
		if v.Met = false; v.Until == rdma.UntilByte && rdma.BufferAt(v.Watch, 1) == nil {
			return 0, rdma.ErrInvalid
		}
		if v.HasAsk {
			if _, err := q.checkSend(unsafe.Slice(&v.Ask, 1)); err != nil {
				return 0, err
			}
		}
		if v.HasAnswer {
			if _, err := q.checkSend(unsafe.Slice(&v.Answer, 1)); err != nil {
				return 0, err
			}
		}
	}
	q.sendMu.Lock()
	defer q.sendMu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if q.postable() != nil || q.now() != rdma.QPRTS || c.slow {
		return 0, rdma.ErrState
	}
	p := C.vb_pingpong(q.c, c.c, (*C.struct_vb_step)(unsafe.Pointer(unsafe.SliceData(vs))), C.int(len(vs)),
		(*C.struct_vb_wc)(unsafe.Pointer(unsafe.SliceData(dst))), C.int(len(dst)))
	n := int(p.n)
	c.note(dst[:n])
	switch p.err {
	case 0:
		return n, nil
	case C.VB_POLL_FAILED:
		return n, errPoll
	}
	return n, q.sendError(p.err)
}
