//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// nudges are the pauses before each nudge of a new connection. siw_accept answers the initiator first, and only then
// has TCP call it for what arrives. Data that is there by then is noticed with the next that comes, which is never
// where the initiator waits for an answer. The gap is some microseconds, or as long as the accepting thread is kept off
// its CPU.
var nudges = [...]time.Duration{5 * time.Millisecond, 50 * time.Millisecond, 500 * time.Millisecond}

// nudge has the initiator write nothing a few times. Whatever the key and address, such
// a write changes nothing (RFC 5041 §5.2).
func (q *qp) nudge() {
	q.dev.group.Go(func() {
		for _, pause := range nudges {
			select {
			case <-time.After(pause):
			case <-q.ended:
				return
			}
			q.sendMu.Lock()
			stands := !q.isClosed() && q.now() == rdma.QPRTS
			if stands {
				C.vb_nudge(q.c) // a full queue is on its way itself
			}
			q.sendMu.Unlock()
			if !stands {
				return
			}
		}
	})
}
