//go:build cgo && linux

package verbs

// #cgo noescape vb_pingpong
// #cgo nocallback vb_pingpong
// #include "shim.h"
import "C"

import (
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

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
