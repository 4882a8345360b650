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
