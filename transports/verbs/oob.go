//go:build cgo && linux

package verbs

import (
	"context"
	"slices"
	"sync"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type tcpLink struct{ x *exchange }

func (l tcpLink) bye(ctx context.Context) { l.x.bye(ctx) }
func (l tcpLink) close()                  { l.x.close() }

func (q *qp) offer(x *exchange, p *rdma.ConnParam) (endpoint, gidEntry, error) {
	d := q.dev
	gid, err := d.gid(x.local)
	if err != nil {
		return endpoint{}, gid, err
	}
	mtu := d.port.mtu
	if d.cfg.MTU != 0 {
		mtu = min(mtu, d.cfg.MTU)
	}
	e := endpoint{QPN: q.num, PSN: newPSN(), GID: gid.GID, MTU: uint32(mtu),
		IRD: uint8(p.IRD), ORD: uint8(p.ORD), RNRRetry: uint8(p.RNRRetry), Private: p.PrivateData}
	if !d.port.ethernet {
		e.LID = d.port.lid
	}
	return e, gid, nil
}

func (q *qp) reach(mine, peer *endpoint, gid gidEntry, p *rdma.ConnParam) error {
	if err := q.dev.toRTR(q.c.qp, peer, gid.Index, p.IRD); err != nil {
		return failed(opToRTR, q.object(), err)
	}
	if err := q.dev.toRTS(q.c.qp, mine.PSN, p.ORD, p.RNRRetry); err != nil {
		return failed("move qp to rts", q.object(), err)
	}
	return nil
}

// negotiate is what holds between a wish and the peer's: one side's reads are the other's to answer.
func negotiate(wish *rdma.ConnParam, ird, ord int, private []byte) rdma.ConnParam {
	return rdma.ConnParam{PrivateData: slices.Clone(private), IRD: min(wish.IRD, ord), ORD: min(wish.ORD, ird),
		RNRRetry: wish.RNRRetry}
}

func (q *qp) connectExchange(ctx context.Context, addr string, p rdma.ConnParam) (rdma.ConnParam, error) {
	x, err := dialExchange(ctx, addr)
	if err != nil {
		return p, err
	}
	got, err := q.initiate(ctx, x, p)
	if err != nil {
		x.close()
	}
	return got, err
}

func (q *qp) initiate(ctx context.Context, x *exchange, p rdma.ConnParam) (rdma.ConnParam, error) {
	mine, gid, err := q.offer(x, &p)
	if err != nil {
		return p, err
	}
	peer, err := x.offer(ctx, mine)
	if err != nil {
		return p, err
	}
	got := negotiate(&p, int(peer.IRD), int(peer.ORD), peer.Private)
	return got, q.complete(ctx, x, &mine, &peer, gid, &got)
}

// complete brings a QP whose peer is known to RTS, and waits until the peer's is there too.
func (q *qp) complete(ctx context.Context, x *exchange, mine, peer *endpoint, gid gidEntry, p *rdma.ConnParam) error {
	err := q.reach(mine, peer, gid, p)
	if err == nil {
		q.join(tcpLink{x}, p)
		err = x.ready(ctx)
	}
	if err == nil {
		err = x.watch(q.gone)
	}
	if err != nil {
		q.spoilt()
	}
	return err
}

type portListener struct {
	dev  *Device
	l    *exchangeListener
	once sync.Once
}

func (d *Device) listenPort(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	l, err := listenExchange(ctx, addr, backlog)
	if err != nil {
		return nil, err
	}
	return &portListener{dev: d, l: l}, nil
}

func (l *portListener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	x, err := l.l.accept(ctx)
	if err != nil {
		return nil, &rdma.OpError{Op: "accept", Object: l.l.addr, Err: err}
	}
	return &portRequest{dev: l.dev, x: x}, nil
}

func (l *portListener) Addr() string { return l.l.addr }

// Close refuses the requests that wait.
func (l *portListener) Close() (err error) {
	l.once.Do(func() {
		err = l.l.close()
		l.dev.count(-1)
	})
	return err
}

type portRequest struct {
	dev *Device
	x   *exchange
}

func (r *portRequest) Param() rdma.ConnParam {
	e := &r.x.peer
	return rdma.ConnParam{PrivateData: slices.Clone(e.Private), IRD: int(e.ORD), ORD: int(e.IRD),
		RNRRetry: int(e.RNRRetry)}
}

func (r *portRequest) RemoteAddr() string { return r.x.remote }

// Accept joins a QP. A call refused for its arguments leaves the request open.
func (r *portRequest) Accept(ctx context.Context, peer rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	return r.dev.accept(ctx, r.x.remote, peer, p, func(ctx context.Context, q *qp) (rdma.ConnParam, error) {
		return r.answer(ctx, q, p)
	})
}

func (r *portRequest) answer(ctx context.Context, q *qp, p rdma.ConnParam) (rdma.ConnParam, error) {
	asked := &r.x.peer
	got := negotiate(&p, int(asked.IRD), int(asked.ORD), asked.Private)
	mine, gid, err := q.offer(r.x, &p)
	if err != nil {
		return got, err
	}
	mine.IRD, mine.ORD = uint8(got.IRD), uint8(got.ORD)
	if err := r.x.answer(ctx, mine); err != nil {
		return got, err
	}
	if err := q.complete(ctx, r.x, &mine, asked, gid, &got); err != nil {
		r.x.close()
		return got, err
	}
	return got, nil
}

func (r *portRequest) Reject(ctx context.Context, privateData []byte) error {
	err := r.dev.checkParam(&rdma.ConnParam{PrivateData: privateData})
	if err == nil {
		if err = r.x.refuse(ctx, privateData); err == nil {
			r.x.close()
		}
	}
	if err != nil {
		return &rdma.OpError{Op: "reject", Object: r.x.remote, Err: err}
	}
	return nil
}
