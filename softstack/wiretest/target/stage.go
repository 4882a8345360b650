package target

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type stage struct {
	bench  *bench
	qp     rdma.QP
	cq     rdma.CQ
	l      rdma.Listener // nil for a stage that connects
	cancel context.CancelFunc
	done   chan struct{} // closed behind outcome; nil when nothing was begun

	outcome Joined
	posted  int // send requests; the joining goroutine's until done
}

func (o *Stage) check() error {
	switch {
	case o.Recvs < 0 || o.Recvs > maxRecvs || o.RecvLen < 0 || o.RecvLen > recvRoom:
		return fmt.Errorf("%d receives of %d octets, limits %d and %d", o.Recvs, o.RecvLen, maxRecvs, recvRoom)
	case o.IRD < 0 || o.ORD < 0 || o.IRD > maxDepth || o.ORD > maxDepth:
		return fmt.Errorf("ird %d and ord %d, limit %d", o.IRD, o.ORD, maxDepth)
	case o.WaitMS <= 0 || time.Duration(o.WaitMS)*time.Millisecond > longest:
		return fmt.Errorf("deadline of %d ms, limit %v", o.WaitMS, longest)
	}
	return nil
}

func (s *session) newStage(ctx context.Context, o *Stage) (*reply, error) {
	if o == nil {
		return nil, errors.New("a stage without options")
	}
	if err := errors.Join(o.check(), s.endStage()); err != nil {
		return nil, err
	}
	b := s.devices[o.Variant]
	if b == nil {
		host, _, err := net.SplitHostPort(s.conn.LocalAddr().String())
		if err != nil {
			return nil, err
		}
		if b, err = openBench(s.cfg, o.Variant, host); err != nil {
			return nil, err
		}
		s.devices[o.Variant] = b
	}
	st := &stage{bench: b, cancel: func() {}}
	if err := st.open(ctx, o); err != nil {
		return nil, errors.Join(err, st.close())
	}
	s.stage = st
	ready := &Ready{Regions: b.regions, Arena: arenaLen, Stride: recvRoom, Ops: b.caps.Ops,
		Revokes: b.mrs[Revocable] != nil}
	if st.l != nil {
		ready.Listen = st.l.Addr()
	}
	return &reply{Ready: ready}, nil
}

func (st *stage) open(ctx context.Context, o *Stage) (err error) {
	b := st.bench
	if err := b.renew(); err != nil {
		return err
	}
	if st.cq, err = b.dev.NewCQ(min(cqDepth, b.caps.MaxCQE)); err != nil {
		return err
	}
	st.qp, err = b.dev.NewQP(rdma.QPConfig{SendCQ: st.cq, RecvCQ: st.cq, SendDepth: postDepth,
		RecvDepth: max(o.Recvs, 1)})
	if err != nil {
		return err
	}
	for i := range o.Recvs {
		wr := rdma.RecvWR{ID: uint64(i + 1)}
		if o.RecvLen > 0 {
			wr.NumSGE = 1
			wr.SGE[0] = rdma.SGE{Addr: b.mrs[Receives].Addr() + uint64(i*recvRoom), Len: uint32(o.RecvLen),
				LKey: b.mrs[Receives].LKey()}
		}
		if _, err := st.qp.PostRecv([]rdma.RecvWR{wr}); err != nil {
			return err
		}
	}
	if o.Connect == "" {
		if st.l, err = b.dev.Listen(ctx, net.JoinHostPort(b.host, "0"), 4); err != nil {
			return err
		}
	}
	ctx, st.cancel = context.WithTimeout(ctx, time.Duration(o.WaitMS)*time.Millisecond)
	st.done = make(chan struct{})
	go func() { // ends with ctx, which close ends
		defer close(st.done)
		st.outcome = st.join(ctx, o)
	}()
	return nil
}

func (st *stage) join(ctx context.Context, o *Stage) Joined {
	p := rdma.ConnParam{IRD: min(o.IRD, st.bench.caps.MaxRDAtom), ORD: min(o.ORD, st.bench.caps.MaxRDAtom),
		PrivateData: o.Private}
	var peer rdma.ConnParam
	var err error
	if o.Connect != "" {
		peer, err = st.qp.Connect(ctx, o.Connect, p)
	} else {
		var r rdma.ConnRequest
		if r, err = st.l.Accept(ctx); err == nil {
			peer = r.Param()
			_, err = r.Accept(ctx, st.qp, p)
		}
	}
	if err == nil {
		err = st.post(o.Post)
	}
	j := Joined{Private: peer.PrivateData}
	var refused *rdma.RejectError
	if err != nil {
		j.Error = err.Error()
	}
	if errors.As(err, &refused) {
		j.Rejected, j.Private = true, refused.PrivateData
	}
	return j
}

func (st *stage) joined(ctx context.Context, wait time.Duration) *Joined {
	limit := time.NewTimer(wait)
	defer limit.Stop()
	select {
	case <-st.done:
		return &st.outcome
	case <-limit.C:
	case <-ctx.Done():
	}
	return &Joined{Pending: true}
}

func (st *stage) postNow(p []Post) error {
	select {
	case <-st.done:
		return st.post(p)
	default:
		return errors.New("the QP is not connected yet")
	}
}

func (st *stage) post(posts []Post) error {
	work := st.bench.mrs[Work]
	for _, p := range posts {
		if p.Len < 0 || p.Len > smallLen || int(p.Op) >= rdma.NumOpcodes {
			return fmt.Errorf("operation %d of %d octets, limit %d", p.Op, p.Len, smallLen)
		}
		if !st.bench.caps.Ops.Has(p.Op) {
			return fmt.Errorf("%v: %w", p.Op, rdma.ErrNotSupported)
		}
		wr := rdma.SendWR{ID: uint64(FirstPost + st.posted), Op: p.Op, Flags: rdma.Signaled, RKey: p.STag,
			RemoteAddr: p.TO, CompareAdd: p.Value, Swap: p.Swap, Imm: uint32(p.Value)}
		if p.Fence {
			wr.Flags |= rdma.Fence
		}
		if p.Len > 0 {
			wr.NumSGE = 1
			wr.SGE[0] = rdma.SGE{Addr: work.Addr(), Len: uint32(p.Len), LKey: work.LKey()}
		}
		if _, err := st.qp.PostSend([]rdma.SendWR{wr}); err != nil {
			return err
		}
		st.posted++
	}
	return nil
}

func (st *stage) completions(ctx context.Context, n int, wait time.Duration) []Completion {
	var out []Completion
	var wcs [16]rdma.WC
	for stop := time.Now().Add(wait); ; time.Sleep(200 * time.Microsecond) {
		k, err := st.cq.Poll(wcs[:])
		for _, wc := range wcs[:k] {
			out = append(out, Completion{ID: wc.ID, Status: wc.Status.String(), Len: wc.ByteLen, Imm: wc.Imm,
				HasImm: wc.Flags&rdma.WithImm != 0,
				Inv:    wc.InvKey, HasInv: wc.Flags&rdma.WithInv != 0, WriteImm: wc.Opcode == rdma.WCRecvWriteImm})
		}
		// One poll that finds nothing ends it, so that what came along is there, too.
		if err != nil || k == 0 && (len(out) >= n || time.Now().After(stop) || ctx.Err() != nil) || len(out) > cqDepth {
			return out
		}
	}
}

func (st *stage) close() error {
	st.cancel()
	var errs []error
	if st.l != nil {
		errs = append(errs, st.l.Close())
	}
	if st.done != nil {
		<-st.done // its context has ended
	}
	if st.qp != nil {
		errs = append(errs, st.qp.Close())
	}
	if st.cq != nil {
		errs = append(errs, st.cq.Close())
	}
	return errors.Join(errs...)
}
