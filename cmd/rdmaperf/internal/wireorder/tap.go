// Package wireorder shows in which order a tier puts the slices of two requests on the wire:
// the published example of sRDMA (Wang, Wang and Li, APNet'23, doi
// 10.1145/3600061.3600082), two requests of two slices of which the later is more urgent.
//
// [Tap] owns the device below it. What [Run] makes it closes.
//
// What is noted is the order of the posts to the device below the tier, which a device
// sends in that order (IBTA 10.8.3.1, RFC 5040 §5.5).
package wireorder

import (
	"context"
	"fmt"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// Tap is a device that notes the writes that are posted to it. It implements rdma.Device,
// and is safe for concurrent use.
type Tap struct {
	rdma.Device
	mu    sync.Mutex
	wires []Write
}

// Write is one write with bytes, as it was posted to the device.
type Write struct {
	RemoteAddr, Len uint64
}

// NewTap puts one over a device, which it owns.
func NewTap(below rdma.Device) *Tap { return &Tap{Device: below} }

// Writes are those noted so far.
func (t *Tap) Writes() []Write {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Write(nil), t.wires...)
}

// NewQP makes a queue pair whose posts are noted.
func (t *Tap) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	q, err := t.Device.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	return &tapQP{q, t}, nil
}

// Listen takes connections for QPs of the tap.
func (t *Tap) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	l, err := t.Device.Listen(ctx, addr, backlog)
	if err != nil {
		return nil, err
	}
	return &tapListener{l}, nil
}

type tapQP struct {
	rdma.QP
	tap *Tap
}

// PostSend notes what the device took.
func (q *tapQP) PostSend(wrs []rdma.SendWR) (int, error) {
	n, err := q.QP.PostSend(wrs)
	q.tap.mu.Lock()
	for i := range wrs[:n] {
		if w := &wrs[i]; w.Op == rdma.OpWrite && w.Len() > 0 {
			q.tap.wires = append(q.tap.wires, Write{w.RemoteAddr, w.Len()})
		}
	}
	q.tap.mu.Unlock()
	return n, err
}

type tapListener struct{ rdma.Listener }

func (l *tapListener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	r, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return &tapRequest{r}, nil
}

type tapRequest struct{ rdma.ConnRequest }

// Accept hands the device below its own QP.
func (r *tapRequest) Accept(ctx context.Context, q rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	own, ok := q.(*tapQP)
	if !ok {
		return rdma.ConnParam{}, &rdma.OpError{Op: "accept", Object: r.RemoteAddr(),
			Err: fmt.Errorf("no qp of this device: %w", rdma.ErrInvalid)}
	}
	return r.ConnRequest.Accept(ctx, own.QP, p)
}
