//go:build cgo && linux

package verbs

// #cgo noescape vb_volley
// #cgo nocallback vb_volley
// #include "shim.h"
import "C"

import (
	"unsafe"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Volley takes one step of a ping-pong in one cgo call. It holds the queue pair's
// and the completion queue's locks while it looks, so v.Looks bounds how long
// others wait.
func (q *qp) Volley(v *rdma.Volley, dst []rdma.WC) (int, error) {
	c := q.send
	if c != q.recv || q.srq != nil || len(dst) == 0 || v.Until == rdma.UntilByte && rdma.BufferAt(v.Watch, 1) == nil {
		return 0, rdma.ErrInvalid
	}
	for _, wr := range [...]struct {
		there bool
		wr    *rdma.SendWR
	}{{v.HasAsk, &v.Ask}, {v.HasAnswer, &v.Answer}} {
		if wr.there {
			if _, err := q.checkSend(unsafe.Slice(wr.wr, 1)); err != nil {
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
	p := C.vb_volley(q.c, c.c, (*C.struct_vb_volley)(unsafe.Pointer(v)), (*C.struct_vb_wc)(unsafe.Pointer(unsafe.SliceData(dst))), C.int(len(dst)))
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
