package rping

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// A correct peer has one message under way; the second receive is for a client that does not wait for the go-ahead.
const (
	recvDepth = 2
	sendDepth = 2 // one message, one read or write
	cqDepth   = recvDepth + sendDepth
)

// Work request IDs: receives use their slot number.
const (
	idSend = recvDepth + iota
	idRDMA
)

// maxDisconnect bounds an orderly end: a stalled peer must not hold up Ctrl-C.
const maxDisconnect = 2 * time.Second

// spinsPerCheck is how often a busy poll looks for its deadline: about every 10 µs.
const spinsPerCheck = 256

type endpoint struct {
	mem  *memory
	cq   rdma.CQ
	qp   rdma.QP
	regs []registration
	ctl  registration // receive slots, then the send slot

	busy    bool
	timeout time.Duration

	wc       [1]rdma.WC
	recvd    []rdma.WC // arrived messages, oldest first
	sending  bool      // the send slot is the device's
	rdmaDone bool
}

// newEndpoint makes a QP in INIT with all its receives posted: a peer may send as soon as the connection stands.
func newEndpoint(mem *memory, access rdma.Access, timeout time.Duration, busy bool) (_ *endpoint, err error) {
	e := &endpoint{mem: mem, timeout: timeout, busy: busy, recvd: make([]rdma.WC, 0, recvDepth)}
	dev := mem.dev
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
		}
	}()
	if e.cq, err = dev.NewCQ(cqDepth); err != nil {
		return nil, err
	}
	e.qp, err = dev.NewQP(rdma.QPConfig{PD: mem.pd, SendCQ: e.cq, RecvCQ: e.cq,
		SendDepth: sendDepth, RecvDepth: recvDepth, SigAll: true, Access: access})
	if err != nil {
		return nil, err
	}
	if e.ctl, err = e.register((recvDepth+1)*AdvertLen, rdma.LocalWrite); err != nil {
		return nil, err
	}
	for slot := range recvDepth {
		if err = e.postRecv(slot); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (e *endpoint) register(size int, access rdma.Access) (registration, error) {
	r, err := e.mem.take(size, access)
	if err == nil {
		e.regs = append(e.regs, r)
	}
	return r, err
}

func (e *endpoint) close() error {
	var errs []error
	if e.qp != nil {
		errs = append(errs, e.qp.Close())
	}
	if e.cq != nil {
		errs = append(errs, e.cq.Close())
	}
	for _, r := range e.regs {
		errs = append(errs, e.mem.give(r))
	}
	return errors.Join(errs...)
}

func (e *endpoint) slot(i int) rdma.SGE {
	return rdma.SGE{Addr: e.ctl.buf.Addr() + uint64(i*AdvertLen), Len: AdvertLen, LKey: e.ctl.region.LKey()}
}

func (e *endpoint) postRecv(slot int) error {
	wr := rdma.RecvWR{ID: uint64(slot), NumSGE: 1}
	wr.SGE[0] = e.slot(slot)
	_, err := e.qp.PostRecv([]rdma.RecvWR{wr})
	return err
}

func (e *endpoint) send(ctx context.Context, a Advert) error {
	if err := e.until(ctx, "completion of the last send", func() bool { return !e.sending }); err != nil {
		return err
	}
	a.put(e.ctl.buf.Bytes()[recvDepth*AdvertLen:])
	wr := rdma.SendWR{ID: idSend, Op: rdma.OpSend, NumSGE: 1}
	wr.SGE[0] = e.slot(recvDepth)
	return e.post(wr, &e.sending, true)
}

// recv takes the oldest message and posts its slot again first, so that the next answer finds a receive.
func (e *endpoint) recv(ctx context.Context, step string) (Advert, error) {
	if err := e.until(ctx, step, func() bool { return len(e.recvd) > 0 }); err != nil {
		return Advert{}, err
	}
	wc := e.recvd[0]
	e.recvd = e.recvd[:copy(e.recvd, e.recvd[1:])]
	if wc.ByteLen > AdvertLen { // more than was posted: the provider is broken
		return Advert{}, fmt.Errorf("%s: %d bytes in a receive of %d: %w", step, wc.ByteLen, AdvertLen, rdma.ErrProtocol)
	}
	at := int(wc.ID) * AdvertLen
	a, err := ParseAdvert(e.ctl.buf.Bytes()[at : at+int(wc.ByteLen)])
	if err != nil {
		return Advert{}, fmt.Errorf("%s: %w", step, err)
	}
	return a, e.postRecv(int(wc.ID))
}

// transfer reads or writes n bytes between r and the peer's buffer, and waits for its completion.
func (e *endpoint) transfer(ctx context.Context, op rdma.Opcode, r registration, a Advert, n uint32) error {
	wr := rdma.SendWR{ID: idRDMA, Op: op, RemoteAddr: a.Addr, RKey: a.RKey, NumSGE: 1}
	wr.SGE[0] = rdma.SGE{Addr: r.buf.Addr(), Len: n, LKey: r.region.LKey()}
	if err := e.post(wr, &e.rdmaDone, false); err != nil {
		return err
	}
	return e.until(ctx, "completion of the "+op.String(), func() bool { return e.rdmaDone })
}

func (e *endpoint) post(wr rdma.SendWR, flag *bool, value bool) error {
	*flag = value
	if _, err := e.qp.PostSend([]rdma.SendWR{wr}); err != nil {
		return fmt.Errorf("post %v: %w", wr.Op, err)
	}
	return nil
}

func (e *endpoint) until(ctx context.Context, step string, done func() bool) error {
	if done() {
		return nil
	}
	waitCtx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	for !done() {
		wc, err := e.next(waitCtx)
		if err == nil {
			err = e.take(wc)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return fmt.Errorf("wait for %s: %w", step, ctx.Err())
		case errors.Is(err, context.DeadlineExceeded):
			return &TimeoutError{Step: step, After: e.timeout}
		default:
			return fmt.Errorf("wait for %s: %w", step, err)
		}
	}
	return nil
}

func (e *endpoint) take(wc rdma.WC) error {
	switch wc.Status {
	case rdma.StatusSuccess:
	case rdma.StatusWRFlushErr:
		return &endedError{wc.VendorErr}
	default:
		return &rdma.StatusError{WC: wc}
	}
	switch wc.ID {
	case idSend:
		e.sending = false
	case idRDMA:
		e.rdmaDone = true
	default:
		e.recvd = append(e.recvd, wc)
	}
	return nil
}

func (e *endpoint) next(ctx context.Context) (rdma.WC, error) {
	for {
		n, err := e.cq.Poll(e.wc[:])
		if n > 0 || err != nil {
			return e.wc[0], err
		}
		if e.busy {
			err = e.spin(ctx, &n)
		} else {
			err = e.sleep(ctx, &n)
		}
		if n > 0 || err != nil {
			return e.wc[0], err
		}
	}
}

// spin polls without sleeping, and now and then lets another goroutine run: with one CPU that may be the peer.
func (e *endpoint) spin(ctx context.Context, n *int) (err error) {
	for range spinsPerCheck {
		if *n, err = e.cq.Poll(e.wc[:]); *n > 0 || err != nil {
			return err
		}
	}
	runtime.Gosched()
	return ctx.Err()
}

// sleep polls once more after it armed the CQ: what is there already raises no event (ibv_req_notify_cq(3)).
func (e *endpoint) sleep(ctx context.Context, n *int) (err error) {
	if err = e.cq.Arm(false); err != nil {
		return err
	}
	if *n, err = e.cq.Poll(e.wc[:]); *n > 0 || err != nil {
		return err
	}
	return e.cq.Wait(ctx)
}

// disconnect ends the connection in order, also of a cancelled run, and does not wait long for its peer.
func (e *endpoint) disconnect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), min(e.timeout, maxDisconnect))
	defer cancel()
	return e.qp.Disconnect(ctx)
}
