package sched

import (
	"context"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// fifoDevice leaves the order to the device below and checks priorities alone: it shows what a layer costs.
type fifoDevice struct {
	rdma.Device
	cfg  Config
	caps rdma.Caps
}

func newFIFO(below rdma.Device, cfg Config) rdma.Device {
	caps := below.Caps()
	caps.Priorities = Priorities
	caps.Features &^= rdma.FeatPingPong // it would post without the look at the priority
	return &fifoDevice{below, cfg, caps}
}

func (d *fifoDevice) Name() string { return d.cfg.name() + "+" + d.Device.Name() }

func (d *fifoDevice) Caps() rdma.Caps { return d.caps }

func (d *fifoDevice) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	q, err := d.Device.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	return &fifoQP{q, d}, nil
}

func (d *fifoDevice) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	l, err := d.Device.Listen(ctx, addr, backlog)
	if err != nil {
		return nil, err
	}
	return &fifoListener{l, d}, nil
}

func (d *fifoDevice) Counts() []rdma.Counts { return rdma.CountsOf(d.Device) }

type fifoListener struct {
	rdma.Listener
	dev *fifoDevice
}

func (l *fifoListener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	r, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return &fifoRequest{r, l.dev}, nil
}

type fifoRequest struct {
	rdma.ConnRequest
	dev *fifoDevice
}

func (r *fifoRequest) Accept(ctx context.Context, x rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	q, ok := x.(*fifoQP)
	if !ok || q.dev != r.dev {
		return rdma.ConnParam{}, &rdma.OpError{Op: "accept", Object: r.RemoteAddr(),
			Err: fmt.Errorf("no qp of this device: %w", rdma.ErrInvalid)}
	}
	return r.ConnRequest.Accept(ctx, q.QP, p)
}

type fifoQP struct {
	rdma.QP
	dev *fifoDevice
}

// PostSend hands requests down in their order, up to one with a priority that does not exist.
func (q *fifoQP) PostSend(wrs []rdma.SendWR) (int, error) {
	for i := range wrs {
		if wrs[i].Priority >= Priorities {
			if n, err := q.QP.PostSend(wrs[:i]); n < i || err != nil {
				return n, err
			}
			return i, rdma.ErrInvalid
		}
	}
	return q.QP.PostSend(wrs)
}

// PingPong is not declared: nothing may pass the tier by.
func (q *fifoQP) PingPong([]rdma.PingPongStep, []rdma.WC) (int, error) {
	return 0, rdma.ErrNotSupported
}
