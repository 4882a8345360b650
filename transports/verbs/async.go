//go:build cgo && linux

package verbs

// #include "shim.h"
import "C"

import (
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// asyncEvents are the events of a QP that the waist has a word for (ibv_get_async_event(3)). after is the state the QP
// is in behind it, where that is certain.
var asyncEvents = map[C.int]struct {
	event rdma.EventType
	fatal bool // the QP is in ERR
}{
	C.VA_EVENT_QP_FATAL:            {rdma.EventQPFatal, true},
	C.VA_EVENT_QP_REQ_ERR:          {rdma.EventQPRequest, true},
	C.VA_EVENT_QP_ACCESS_ERR:       {rdma.EventQPAccess, true},
	C.VA_EVENT_SQ_DRAINED:          {rdma.EventSQDrained, false},
	C.VA_EVENT_QP_LAST_WQE_REACHED: {rdma.EventLastWQEReached, false},
}

// readAsync takes the asynchronous events that are there. The events of ports and paths have no meaning in the waist.
func (d *Device) readAsync() {
	var ev C.struct_vb_event
	for C.vb_async(d.ctx, &ev) == 0 {
		switch ev._type {
		case C.VA_EVENT_CQ_ERR:
			if c := d.cqOf(ev.object); c != nil {
				c.lost()
				d.raise(rdma.EventCQError, 0, 0)
			}
		case C.VA_EVENT_SRQ_LIMIT_REACHED:
			d.raise(rdma.EventSRQLimit, 0, 0)
		case C.VA_EVENT_DEVICE_FATAL:
			for _, q := range d.everyQP() {
				q.failed()
				d.raise(rdma.EventQPFatal, q.num, uint32(ev._type))
			}
		default:
			a, known := asyncEvents[ev._type]
			q := d.qpOf(uint32(ev.qp_num))
			if !known || q == nil || q.id != uint64(ev.serial) || a.event == rdma.EventSQDrained &&
				!q.draining.CompareAndSwap(true, false) {
				continue // siw tells of a drained queue on every flush
			}
			if a.fatal {
				q.failed()
			}
			d.raise(a.event, q.num, 0)
		}
	}
}

func (d *Device) qpOf(num uint32) *qp {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.qps[num]
}

func (d *Device) everyQP() []*qp {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Collect(maps.Values(d.qps))
}

// watcher is a goroutine that sleeps until a descriptor is readable, of which it has a duplicate.
type watcher struct {
	file *os.File
	done chan struct{}
}

// watch calls drain whenever the non-blocking fd may have something to read, from one goroutine that stop joins.
func watch(fd int, drain func()) (*watcher, error) {
	dup, err := syscall.Dup(fd)
	if err != nil {
		return nil, err
	}
	syscall.CloseOnExec(dup)
	w := &watcher{file: os.NewFile(uintptr(dup), "rdma events"), done: make(chan struct{})}
	raw, err := w.file.SyscallConn()
	if err == nil {
		err = w.file.SetReadDeadline(time.Time{}) // fails where the descriptor cannot be polled
	}
	if err != nil {
		w.file.Close()
		return nil, err
	}
	go func() {
		defer close(w.done)
		raw.Read(func(uintptr) bool {
			drain()
			return false
		})
	}()
	return w, nil
}

func (w *watcher) stop() {
	w.file.SetReadDeadline(time.Unix(1, 0))
	<-w.done
	w.file.Close()
}
