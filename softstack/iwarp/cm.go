package iwarp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/ddp"
	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/rdmap"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/stream"
)

// rtrIndex stands in the FIFO of outstanding reads for the RTR read, which has no send queue entry.
const rtrIndex = ^uint32(0)

func (d *Device) checkParam(p *rdma.ConnParam) error {
	if p.IRD < 0 || p.IRD > maxRDAtom || p.ORD < 0 || p.ORD > maxRDAtom {
		return fmt.Errorf("ird %d, ord %d, limit %d: %w", p.IRD, p.ORD, maxRDAtom, rdma.ErrInvalid)
	}
	if limit := d.caps.MaxPrivate; len(p.PrivateData) > limit {
		return fmt.Errorf("private data of %d bytes, limit %d: %w", len(p.PrivateData), limit, rdma.ErrInvalid)
	}
	return nil
}

// attempt is a Connect or Accept at work on a QP. Close cancels it and waits.
type attempt struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// claim marks an INIT QP as connecting. The context ends with the deadline, or defaultTimeout, or the QP.
func (q *qp) claim(ctx context.Context) (context.Context, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return nil, rdma.ErrClosed
	case q.state != rdma.QPInit || q.busy != nil:
		return nil, fmt.Errorf("qp is %s: %w", q.state, rdma.ErrState)
	}
	ctx, cancel := withTimeout(ctx, defaultTimeout)
	q.busy = &attempt{cancel, make(chan struct{})}
	return ctx, nil
}

func (q *qp) release() {
	q.mu.Lock()
	a := q.busy
	q.busy = nil
	q.mu.Unlock()
	a.cancel()
	close(a.done)
}

func withTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, d)
}

func (q *qp) Connect(ctx context.Context, addr string, p rdma.ConnParam) (rdma.ConnParam, error) {
	fail := func(err error) (rdma.ConnParam, error) {
		return rdma.ConnParam{}, &rdma.OpError{Op: "connect", Object: addr, Err: err}
	}
	if err := q.dev.checkParam(&p); err != nil {
		return fail(err)
	}
	ctx, err := q.claim(ctx)
	if err != nil {
		return fail(err)
	}
	defer q.release()
	conn, err := q.dev.stack.Dial(ctx, addr, q.dev.cfg.buffers())
	if err != nil {
		return fail(reachable(err))
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	cfg := q.dev.cfg.mpa(&p)
	n, err := initiate(conn, cfg, q.dev.cfg.request(p.PrivateData))
	if !stop() && err == nil {
		err = os.ErrDeadlineExceeded
	}
	if err != nil {
		conn.Close()
		return fail(reachable(err))
	}
	offer := cutOffer(&n)
	if n.Rejected {
		conn.Close()
		return rdma.ConnParam{}, &rdma.OpError{Op: "connect", Object: addr,
			Err: &rdma.RejectError{PrivateData: n.PeerPrivate}}
	}
	if err := q.attach(conn, n, offer, false); err != nil {
		return fail(err)
	}
	return rdma.ConnParam{PrivateData: n.PeerPrivate, IRD: int(n.IRD), ORD: int(n.ORD)}, nil
}

func initiate(conn stream.Opening, cfg mpa.Config, private []byte) (mpa.Negotiated, error) {
	req, err := mpa.NewRequest(cfg, private)
	if err != nil {
		return mpa.Negotiated{}, fmt.Errorf("%w: %w", rdma.ErrInvalid, err)
	}
	// One write and nothing behind it: Linux siw refuses octets that follow the Request before its Reply.
	if _, err := conn.Write(mpa.AppendFrame(nil, req)); err != nil {
		return mpa.Negotiated{}, err
	}
	rep, err := readFrame(conn)
	if err != nil {
		return mpa.Negotiated{}, err
	}
	n, err := cfg.HandleReply(req, rep)
	var fault *mpa.Error
	if errors.As(err, &fault) {
		if fault.Code == mpa.CodeInsufficientIRD || fault.Code == mpa.CodeNoRTR {
			// RFC 6581 §10; the connection fails anyway
			conn.Write(terminateFrame(rdmap.FromMPA(fault.Code), n.CRC, n.TxMarkers))
		}
		err = fmt.Errorf("%w: %w", rdma.ErrProtocol, err)
	}
	return n, err
}

func terminateFrame(code rdmap.TermCode, crc, markers bool) []byte {
	t := rdmap.NewTerminate(code, 0, nil, nil)
	var h [ddp.UntaggedLen]byte
	ddp.PutUntagged(h[:], &ddp.Untagged{Last: true, ULP: rdmap.Control(rdmap.OpTerminate), QN: ddp.QNTerminate, MSN: 1})
	ulpdu := rdmap.AppendTerminate(h[:], &t)
	if markers {
		var w mpa.MarkerWriter
		return w.Append(nil, ulpdu, crc)
	}
	return mpa.AppendFPDU(nil, ulpdu, crc)
}

// readFrame reads exactly one MPA frame: what follows belongs to the stream.
func readFrame(r io.Reader) (*mpa.Frame, error) {
	b := make([]byte, mpa.FrameHeaderLen, mpa.FrameHeaderLen+64)
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, err
	}
	_, n, err := mpa.ParseFrameHeader(b)
	if err == nil {
		b = append(b, make([]byte, n)...)
		if _, err := io.ReadFull(r, b[mpa.FrameHeaderLen:]); err != nil {
			return nil, err
		}
		var f *mpa.Frame
		if f, err = mpa.ParseFrame(b); err == nil {
			return f, nil
		}
	}
	return nil, fmt.Errorf("%w: %w", rdma.ErrProtocol, err)
}

// reachable names network failures in the waist's words.
func reachable(err error) error {
	switch {
	case errors.Is(err, rdma.ErrProtocol), errors.Is(err, rdma.ErrInvalid):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: nothing listens there", rdma.ErrUnreachable)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%w: no answer in time: %w", rdma.ErrUnreachable, context.DeadlineExceeded)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return fmt.Errorf("%w: the peer closed the connection during mpa start-up; is it an iwarp listener?",
			rdma.ErrUnreachable)
	}
	return fmt.Errorf("%w: %w", rdma.ErrUnreachable, err)
}

// attach opens the stream of a QP. conn is taken over, also on error.
func (q *qp) attach(o stream.Opening, n mpa.Negotiated, peer peerOffer, passive bool) error {
	conn, err := o.Stream()
	if err != nil {
		return err
	}
	cfg := &q.dev.cfg
	mulpdu := mpa.MULPDU(conn.MSS(), n.TxMarkers)
	if cfg.MaxULPDU > 0 {
		mulpdu = min(mulpdu, cfg.MaxULPDU)
	}
	start, ok := started(n, passive)
	q.mu.Lock()
	defer q.mu.Unlock()
	if !ok || q.closed || q.state != rdma.QPInit {
		conn.Close()
		return rdma.ErrState
	}
	q.conn = conn
	seg, inPlace := 0, q.dev.stack.InPlace()
	if inPlace {
		seg = conn.MSS()
	}
	q.tx.init(mulpdu, seg, n.CRC, n.TxMarkers, start)
	if q.dev.byRef {
		q.tx.byReference(conn.(stream.Referrer))
	}
	q.rx.init(n.CRC, n.RxMarkers, cfg.StoreAndForward)
	q.rx.inPlace = inPlace && !n.RxMarkers
	q.ord, q.ird = int(n.ORD), int(n.IRD)
	q.reads = newFIFO(q.ord + 1)
	q.irq = newFIFO(max(q.ird, 1))
	q.req = make([]inbound, len(q.irq.ring))
	q.ops = cfg.opsFor(peer)
	q.phase = phaseOpen
	q.setState(rdma.QPRTR)
	q.setState(rdma.QPRTS)
	if err := q.dev.bg.enter(q); err != nil {
		q.shut()
		return err
	}
	q.join()
	if !passive && n.PeerToPeer {
		q.sendRTR(n.RTR)
	}
	return nil
}

func started(n mpa.Negotiated, passive bool) (s mpa.State, ok bool) {
	steps := [2]mpa.Event{mpa.EventSendRequest, mpa.EventReply}
	switch {
	case passive:
		steps = [2]mpa.Event{mpa.EventRequest, mpa.EventSendReply}
	case n.PeerToPeer:
		steps[1] = mpa.EventReplyRTR
	}
	for _, e := range steps {
		if s, ok = s.Next(e); !ok {
			break
		}
	}
	return s, ok
}

// sendRTR opens a peer-to-peer stream (RFC 6581 §9.2). STag 1 as Linux siw: 0 upset hardware.
func (q *qp) sendRTR(r mpa.RTR) {
	if r == mpa.RTRRead {
		var h [ddp.UntaggedLen + rdmap.ReadRequestLen]byte
		ddp.PutUntagged(h[:], &ddp.Untagged{Last: true, ULP: rdmap.Control(rdmap.OpReadReq), QN: ddp.QNReadReq,
			MSN: q.tx.readMSN})
		rdmap.PutReadRequest(h[ddp.UntaggedLen:], &rdmap.ReadRequest{SinkSTag: 1, SrcSTag: 1})
		q.tx.readMSN++
		q.tx.frame(h[:], nil, 0, false)
		q.reads.push(rtrIndex)
		q.rtrRead = true
	} else {
		var h [ddp.TaggedLen]byte
		ddp.PutTagged(h[:], &ddp.Tagged{Last: true, ULP: rdmap.Control(rdmap.OpWrite), STag: 1})
		q.tx.frame(h[:], nil, 0, false)
	}
	q.tx.start, _ = q.tx.start.Next(mpa.EventSendRTR)
	q.transmit()
}
