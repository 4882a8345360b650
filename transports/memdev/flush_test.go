package memdev

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// stuck is a pair with requests 1..3 waiting at a and receives 11, 12 posted.
func stuck(t *testing.T) (a, b *side) {
	a, b, _ = newPair(t, Config{}, func(a, _ *setup) { a.param.RNRRetry = rnrForever })
	unsignaled := b.at(0, wr(rdma.OpWrite, 2, a.sge(0, 1)))
	unsignaled.Flags = 0
	a.post(wr(rdma.OpSend, 1), unsignaled, wr(rdma.OpSend, 3))
	a.recv(11, a.sge(0, 8))
	a.recv(12, a.sge(0, 8))
	return a, b
}

func TestOutstandingWorkIsFlushedInOrderAndOnce(t *testing.T) {
	ends := map[string]struct {
		do   func(a, b *side) error
		peer []rdma.EventType
	}{
		"Fail":       {func(a, _ *side) error { return a.qp.Fail() }, nil},
		"Fail twice": {func(a, _ *side) error { return errors.Join(a.qp.Fail(), a.qp.Fail()) }, nil},
		"Close":      {func(a, _ *side) error { return a.qp.Close() }, []rdma.EventType{rdma.EventPeerDisconnect}},
		"Close twice": {func(a, _ *side) error { return errors.Join(a.qp.Close(), a.qp.Close()) },
			[]rdma.EventType{rdma.EventPeerDisconnect}},
		"Fail then Close": {func(a, _ *side) error { return errors.Join(a.qp.Fail(), a.qp.Close()) },
			[]rdma.EventType{rdma.EventPeerDisconnect}},
		"the peer's Close":      {func(_, b *side) error { return b.qp.Close() }, nil},
		"the peer's Disconnect": {func(_, b *side) error { return b.qp.Disconnect(context.Background()) }, nil},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			a, b := stuck(t)
			ok(t, end.do(a, b))
			same(t, "sends", outcomes(t, a.sq), flushed(1, 2, 3))
			same(t, "receives", outcomes(t, a.rq), flushed(11, 12))
			same(t, "state", a.qp.State(), rdma.QPErr)
			same(t, "peer's events", b.events(), end.peer)
		})
	}
}

func TestFlushedCompletionsCarryOnlyIdentity(t *testing.T) {
	a, _ := stuck(t)
	ok(t, a.qp.Fail())
	for _, wc := range append(drain(t, a.sq), drain(t, a.rq)...) {
		same(t, "completion", wc, rdma.WC{ID: wc.ID, QPNum: a.qp.Num(), Status: rdma.StatusWRFlushErr})
	}
}

func TestPostsByState(t *testing.T) {
	f := NewFabric(Config{})
	a := newSide(t, f, "a", ordinary())
	sends := []rdma.SendWR{wr(rdma.OpSend, 1)}
	takes(t, "PostSend in INIT", 0, rdma.ErrState)(a.qp.PostSend(sends))
	a.recv(1, a.sge(0, 1)) // allowed in INIT
	ok(t, a.qp.Close())
	same(t, "receive of a QP never connected", outcomes(t, a.rq), flushed(1))
	takes(t, "PostSend after Close", 0, rdma.ErrClosed)(a.qp.PostSend(sends))
	takes(t, "PostRecv after Close", 0, rdma.ErrClosed)(a.qp.PostRecv(make([]rdma.RecvWR, 1)))
}

func TestDisconnectSendsWhatWasPosted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := stuck(t)
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- a.qp.Disconnect(context.Background()) }()
		}
		synctest.Wait()
		b.recv(20, b.sge(0, 8))
		synctest.Wait()
		same(t, "while it waits", a.qp.State(), rdma.QPRTS)
		b.recv(21, b.sge(0, 8))
		ok(t, <-done)
		ok(t, <-done)
		same(t, "sends", outcomes(t, a.sq), good(1, 3))
		same(t, "peer's receives", outcomes(t, b.rq), good(20, 21))
		same(t, "states", []rdma.QPState{a.qp.State(), b.qp.State()}, []rdma.QPState{rdma.QPErr, rdma.QPErr})
		same(t, "peer's events", b.events(), []rdma.EventType{rdma.EventPeerDisconnect})
		same(t, "own events", a.events(), nil)
	})
}

func TestDisconnectGivesUpWithItsContext(t *testing.T) {
	a, b := stuck(t)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fails(t, "Disconnect", a.qp.Disconnect(ctx), context.DeadlineExceeded)
	same(t, "sends", outcomes(t, a.sq), flushed(1, 2, 3))
	same(t, "peer", b.qp.State(), rdma.QPErr)
}

func TestDrainHoldsNewSendsUntilResume(t *testing.T) {
	a, b := stuck(t) // request 1 is begun, 2 and 3 are not
	ok(t, a.qp.Drain())
	same(t, "state", a.qp.State(), rdma.QPSQD)
	same(t, "while a send is under way", a.events(), nil)
	b.recv(20)
	b.recv(21)
	same(t, "begun sends finish", outcomes(t, a.sq), good(1))
	same(t, "then", a.events(), []rdma.EventType{rdma.EventSQDrained})
	a.post(wr(rdma.OpSend, 4))
	same(t, "posts in SQD are held", outcomes(t, a.sq), nil)

	// The responder's half goes on in SQD.
	b.post(wr(rdma.OpSend, 50, b.sge(0, 1)))
	same(t, "the peer's send", outcomes(t, b.sq), good(50))

	b.recv(22)
	ok(t, a.qp.Resume())
	same(t, "after Resume", outcomes(t, a.sq), good(3, 4))
	same(t, "events", a.events(), nil)
}

func TestDrainWaitsForAnswers(t *testing.T) {
	a, b, clock := delayed(t)
	a.post(b.at(0, wr(rdma.OpRead, 1, a.sge(0, 8))))
	ok(t, a.qp.Drain())
	same(t, "before the answer", a.events(), nil)
	clock.advance(time.Millisecond)
	same(t, "after it", a.events(), []rdma.EventType{rdma.EventSQDrained})
	same(t, "read", outcomes(t, a.sq), good(1))
}

func TestDisconnectDrainAndResumeByState(t *testing.T) {
	idle := newSide(t, NewFabric(Config{}), "idle", ordinary()).qp
	fails(t, "Disconnect in INIT", idle.Disconnect(soon(t)), rdma.ErrState)
	fails(t, "Drain in INIT", idle.Drain(), rdma.ErrState)
	fails(t, "Resume in INIT", idle.Resume(), rdma.ErrState)
	a, _, _ := newPair(t, Config{})
	fails(t, "Resume in RTS", a.qp.Resume(), rdma.ErrState)
	ok(t, a.qp.Drain())
	same(t, "an idle queue is drained at once", a.events(), []rdma.EventType{rdma.EventSQDrained})
	fails(t, "Drain in SQD", a.qp.Drain(), rdma.ErrState)
	ok(t, a.qp.Fail())
	same(t, "SQD to ERR", a.qp.State(), rdma.QPErr)
}

func TestKilledDeviceFailsItsQPs(t *testing.T) {
	a, b := stuck(t)
	a.dev.Kill()
	same(t, "its sends", outcomes(t, a.sq), append(all(rdma.StatusFatalErr, 1), flushed(2, 3)...))
	same(t, "its events", a.events(), []rdma.EventType{rdma.EventQPFatal})
	same(t, "the peer hears nothing", b.events(), nil)
	b.post(a.at(0, wr(rdma.OpWrite, 9, b.sge(0, 1))))
	same(t, "but finds nobody", outcomes(t, b.sq), all(rdma.StatusRetryExcErr, 9))
	fails(t, "NewCQ of a dead device", errOf(a.dev.NewCQ(1)), rdma.ErrState)
}
