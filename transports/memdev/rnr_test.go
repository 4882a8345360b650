package memdev

import (
	"fmt"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func rnrPair(t *testing.T, retry int) (a, b *side, clock *manual) {
	clock = newManual()
	a, b, _ = newPair(t, Config{RNRTimer: time.Millisecond, Now: clock.Now},
		func(a, _ *setup) { a.param.RNRRetry = retry })
	return a, b, clock
}

func TestTriesAreBounded(t *testing.T) {
	for retry := 1; retry <= 6; retry++ {
		t.Run(fmt.Sprint(retry, " tries"), func(t *testing.T) {
			a, _, clock := rnrPair(t, retry)
			a.post(wr(rdma.OpSend, 1))
			clock.advance(time.Duration(retry)*time.Millisecond - 1)
			same(t, "one tick early", outcomes(t, a.sq), nil)
			clock.advance(1)
			same(t, "in time", outcomes(t, a.sq), all(rdma.StatusRNRRetryExcErr, 1))
		})
	}
}

func TestReceiveWithinTheTriesSavesTheSend(t *testing.T) {
	a, b, clock := rnrPair(t, 3)
	a.post(wr(rdma.OpSend, 1, a.sge(0, 8)), wr(rdma.OpSend, 2, a.sge(0, 8)))
	clock.advance(2 * time.Millisecond)
	b.recv(10, b.sge(0, 8))
	same(t, "first", outcomes(t, a.sq), good(1))
	clock.advance(2 * time.Millisecond) // the second has its own tries
	b.recv(11, b.sge(0, 8))
	same(t, "second", outcomes(t, a.sq), good(2))
	same(t, "receives", outcomes(t, b.rq), good(10, 11))
}

func TestReceiveAfterTheTriesIsTooLate(t *testing.T) {
	a, b, clock := rnrPair(t, 1)
	a.post(wr(rdma.OpSend, 1))
	clock.advance(time.Millisecond)
	b.recv(10, b.sge(0, 8)) // nobody polled in between
	same(t, "status", outcomes(t, a.sq), all(rdma.StatusRNRRetryExcErr, 1))
	same(t, "receives", outcomes(t, b.rq), nil)
}

func TestSevenWaitsForEver(t *testing.T) {
	a, b, clock := rnrPair(t, 7)
	w := b.at(0, wr(rdma.OpWriteImm, 2, a.sge(0, 4)))
	copy(a.buf.Bytes(), "late")
	a.post(wr(rdma.OpSend, 1), w)
	clock.advance(1000 * time.Hour)
	same(t, "after a long time", outcomes(t, a.sq), nil)
	b.recv(10)
	same(t, "send", outcomes(t, a.sq), good(1))
	if b.buf.Bytes()[0] != 0 {
		t.Error("a write with immediate placed bytes before its receive was there")
	}
	b.recv(11)
	same(t, "write_imm", outcomes(t, a.sq), good(2))
	same(t, "written", string(b.buf.Bytes()[:4]), "late")
}

func TestWaitingSendLearnsThatThePeerFailed(t *testing.T) {
	a, b, _ := rnrPair(t, 7)
	a.post(wr(rdma.OpSend, 1), wr(rdma.OpSend, 2))
	ok(t, b.qp.Fail())
	same(t, "statuses", outcomes(t, a.sq), []outcome{{1, rdma.StatusRetryExcErr}, {2, rdma.StatusWRFlushErr}})
}

func TestWriteNeedsNoReceiveButStaysBehindTheSend(t *testing.T) {
	a, b, _ := rnrPair(t, 7)
	a.buf.Bytes()[0] = 1
	a.post(wr(rdma.OpSend, 1), b.at(0, wr(rdma.OpWrite, 2, a.sge(0, 1))))
	if b.buf.Bytes()[0] != 0 {
		t.Error("the write overtook a send that waits")
	}
	b.recv(10)
	same(t, "both", outcomes(t, a.sq), good(1, 2))
}

func sharing(t *testing.T, n, depth, retry int) (as []*side, qs []rdma.QP, srq rdma.SRQ, b *side) {
	f := NewFabric(Config{})
	b = newSide(t, f, "b", ordinary())
	srq = must(b.dev.NewSRQ(rdma.SRQConfig{Depth: depth}))(t)
	t.Cleanup(func() { ok(t, srq.Close()) })
	for i := range n {
		s := ordinary()
		s.param.RNRRetry = retry
		a := newSide(t, f, fmt.Sprint("a", i), s)
		q := must(b.dev.NewQP(rdma.QPConfig{SendCQ: b.sq, RecvCQ: b.rq, SRQ: srq}))(t)
		t.Cleanup(func() { ok(t, q.Close()) })
		connect(t, a, &side{dev: b.dev, qp: q})
		as, qs = append(as, a), append(qs, q)
	}
	return as, qs, srq, b
}

func fillSRQ(t *testing.T, s rdma.SRQ, b *side, from, n int) {
	t.Helper()
	for i := range n {
		w := rdma.RecvWR{ID: uint64(from + i), NumSGE: 1, SGE: [rdma.MaxSGE]rdma.SGE{b.sge(0, 64)}}
		if n, err := s.PostRecv([]rdma.RecvWR{w}); n != 1 || err != nil {
			t.Fatalf("SRQ.PostRecv(id %d) = %d, %v", from+i, n, err)
		}
	}
}

func TestSendersWaitForASharedReceiveInTurn(t *testing.T) {
	as, qs, srq, b := sharing(t, 3, 16, rnrForever)
	for _, i := range []int{2, 0, 1} {
		as[i].post(wr(rdma.OpSend, 1))
	}
	as[2].post(wr(rdma.OpSend, 2)) // more work does not cost the turn
	ok(t, as[0].qp.Fail())         // no longer waits
	for i, want := range []int{2, 1, 2} {
		fillSRQ(t, srq, b, i, 1)
		if wcs := drain(t, b.rq); len(wcs) != 1 || wcs[0].QPNum != qs[want].Num() {
			t.Errorf("receive %d went to %+v, want qp %d", i, wcs, qs[want].Num())
		}
	}
}

func TestSRQUsesItsOwnDomain(t *testing.T) {
	f := NewFabric(Config{})
	a, b := newSide(t, f, "a", ordinary()), newSide(t, f, "b", ordinary())
	pd := must(b.dev.AllocPD())(t)
	srq := must(b.dev.NewSRQ(rdma.SRQConfig{PD: pd, Depth: 4}))(t)
	m := must(b.dev.RegMR(pd, b.buf, rdma.LocalWrite))(t)
	q := must(b.dev.NewQP(rdma.QPConfig{SendCQ: b.sq, RecvCQ: b.rq, SRQ: srq}))(t)
	connect(t, a, &side{dev: b.dev, qp: q})
	w := rdma.RecvWR{ID: 1, NumSGE: 1, SGE: [rdma.MaxSGE]rdma.SGE{{Addr: m.Addr(), Len: 8, LKey: m.LKey()}}}
	must(srq.PostRecv([]rdma.RecvWR{w}))(t)
	a.post(wr(rdma.OpSend, 1, a.sge(0, 8)))
	same(t, "receive", outcomes(t, b.rq), good(1))
	ok(t, q.Close())
	ok(t, srq.Close())
	ok(t, m.Close())
	ok(t, b.dev.FreePD(pd))
}

func TestSRQLimits(t *testing.T) {
	as, qs, srq, b := sharing(t, 1, 4, 0)
	one := make([]rdma.RecvWR, 1)
	takes(t, "QP.PostRecv with an SRQ", 0, rdma.ErrInvalid)(qs[0].PostRecv(one))
	fillSRQ(t, srq, b, 0, 4)
	takes(t, "fifth of four", 0, rdma.ErrQueueFull)(srq.PostRecv(one))
	as[0].post(wr(rdma.OpSend, 1))
	drain(t, b.rq)
	takes(t, "two into one place", 1, rdma.ErrQueueFull)(srq.PostRecv([]rdma.RecvWR{{}, {}}))
	for _, limit := range []int{-1, 5} {
		fails(t, fmt.Sprintf("Arm(%d)", limit), srq.Arm(limit), rdma.ErrInvalid)
	}
	fails(t, "Close while a QP uses it", srq.Close(), rdma.ErrBusy)
	ok(t, qs[0].Close())
	ok(t, srq.Close())
	takes(t, "PostRecv after Close", 0, rdma.ErrClosed)(srq.PostRecv(one))
}
