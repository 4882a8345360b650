package model

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A queue pair's number stands in front of the private data, so that requests take their time at the right NIC.
const (
	tagLen  = 8
	tagMark = 0x6d6f646c // "modl"
)

func (q *qp) tagged(p rdma.ConnParam) (rdma.ConnParam, error) {
	if n := len(p.PrivateData); n > q.dev.caps.MaxPrivate {
		return p, fmt.Errorf("%d bytes of private data, limit %d: %w", n, q.dev.caps.MaxPrivate, rdma.ErrInvalid)
	}
	b := binary.BigEndian.AppendUint32(make([]byte, 0, tagLen+len(p.PrivateData)), tagMark)
	b = binary.BigEndian.AppendUint32(b, q.id)
	p.PrivateData = append(b, p.PrivateData...)
	return p, nil
}

// untagged takes the peer's number away; 0 when there is none.
func untagged(p rdma.ConnParam) (rdma.ConnParam, uint32) {
	b := p.PrivateData
	if len(b) < tagLen || binary.BigEndian.Uint32(b) != tagMark {
		return p, 0
	}
	p.PrivateData = b[tagLen:]
	return p, binary.BigEndian.Uint32(b[4:])
}

func (q *qp) Connect(ctx context.Context, addr string, p rdma.ConnParam) (rdma.ConnParam, error) {
	p, err := q.tagged(p)
	if err != nil {
		return rdma.ConnParam{}, &rdma.OpError{Op: "connect to", Object: addr, Err: err}
	}
	got, err := q.QP.Connect(ctx, addr, p)
	got, _ = untagged(got)
	return got, err
}

type listener struct {
	rdma.Listener
	dev *device
}

func (l *listener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	r, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	p, id := untagged(r.Param())
	return &connRequest{r, l.dev, p, id}, nil
}

type connRequest struct {
	rdma.ConnRequest
	dev  *device
	asks rdma.ConnParam
	id   uint32
}

func (r *connRequest) Param() rdma.ConnParam {
	p := r.asks
	p.PrivateData = append([]byte(nil), p.PrivateData...)
	return p
}

// Reject refuses with private data, which is no longer than that of an answer.
func (r *connRequest) Reject(ctx context.Context, private []byte) error {
	if len(private) > r.dev.caps.MaxPrivate {
		return &rdma.OpError{Op: "reject", Object: r.RemoteAddr(),
			Err: fmt.Errorf("%d bytes of private data, limit %d: %w", len(private), r.dev.caps.MaxPrivate,
				rdma.ErrInvalid)}
	}
	return r.ConnRequest.Reject(ctx, private)
}

// Accept joins a queue pair of this device, and both ends know each other before either can post.
func (r *connRequest) Accept(ctx context.Context, x rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	fail := func(err error) (rdma.ConnParam, error) {
		return rdma.ConnParam{}, &rdma.OpError{Op: "accept", Object: r.RemoteAddr(), Err: err}
	}
	q, ok := x.(*qp)
	if !ok || q.dev != r.dev {
		return fail(fmt.Errorf("no qp of this device: %w", rdma.ErrInvalid))
	}
	p, err := q.tagged(p)
	if err != nil {
		return fail(err)
	}
	world.Lock()
	far := world.qps[r.id]
	if far != nil && q.peer == nil && far.peer == nil {
		q.peer, far.peer = far, q
	}
	joined := far != nil && q.peer == far
	world.Unlock()
	if !joined && far == nil {
		return fail(fmt.Errorf("the peer is gone, or no model: %w", rdma.ErrProtocol))
	}
	got, err := r.ConnRequest.Accept(ctx, q.QP, p)
	got, _ = untagged(got)
	if err != nil && joined {
		world.Lock()
		if q.State() == rdma.QPInit {
			q.peer = nil
		}
		if far.peer == q {
			far.peer = nil
		}
		world.Unlock()
	}
	return got, err
}
