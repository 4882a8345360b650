package memdev

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestOverrunLosesOneCQAndItsQPOnly(t *testing.T) {
	f := NewFabric(Config{})
	sa := ordinary()
	sa.cq = 4
	a, b := newSide(t, f, "a", sa), newSide(t, f, "b", ordinary())
	connect(t, a, b)
	// A second QP of the same device with queues of its own.
	otherCQ := must(a.dev.NewCQ(4))(t)
	otherQP := must(a.dev.NewQP(rdma.QPConfig{SendCQ: otherCQ, RecvCQ: otherCQ}))(t)
	c := newSide(t, f, "c", ordinary())
	connect(t, &side{dev: a.dev, qp: otherQP}, c)

	for i := range uint64(5) {
		a.post(b.at(0, wr(rdma.OpWrite, i, a.sge(0, 1))))
	}
	same(t, "events", a.events(), []rdma.EventType{rdma.EventCQError, rdma.EventQPFatal})
	same(t, "the QP", a.qp.State(), rdma.QPErr)
	var wcs [8]rdma.WC
	takes(t, "Poll of the 4 kept", 4, rdma.ErrCQOverrun)(a.sq.Poll(wcs[:]))
	takes(t, "Arm", 0, rdma.ErrCQOverrun)(0, a.sq.Arm(false))
	takes(t, "Wait", 0, rdma.ErrCQOverrun)(0, a.sq.Wait(soon(t)))

	w := c.at(0, wr(rdma.OpWrite, 1, c.sge(0, 0)))
	takes(t, "PostSend on the other QP", 1, nil)(otherQP.PostSend([]rdma.SendWR{w}))
	same(t, "the other CQ", outcomes(t, otherCQ), good(1))
	ok(t, otherQP.Close())
	ok(t, otherCQ.Close())
}

func fired(t *testing.T, c rdma.CQ) bool {
	t.Helper()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	err := c.Wait(ended)
	if err != nil {
		fails(t, "Wait", err, context.Canceled)
	}
	return err == nil
}

func TestWriteImmCanBeSolicited(t *testing.T) {
	a, b, _ := newPair(t, Config{})
	b.recv(1)
	ok(t, b.rq.Arm(true))
	w := wr(rdma.OpWriteImm, 1)
	w.Flags |= rdma.Solicited
	a.post(w)
	if !fired(t, b.rq) {
		t.Error("no event")
	}
}

func TestWaitIsWokenByClose(t *testing.T) {
	d := must(NewFabric(Config{}).Open(""))(t)
	c := must(d.NewCQ(1))(t)
	errs := make(chan error)
	for range 2 {
		go func() { errs <- c.Wait(soon(t)) }()
	}
	ok(t, c.Close())
	for range 2 {
		takes(t, "Wait", 0, rdma.ErrClosed)(0, <-errs)
	}
}

// Nobody polls while the timer runs: the waiter itself must do the work.
func TestWaitDrivesTimers(t *testing.T) {
	tests := map[string]struct {
		cfg  Config
		req  func(a, b *side) rdma.SendWR
		want rdma.Status
	}{
		"a delayed answer": {Config{ReadDelay: time.Second}, func(a, b *side) rdma.SendWR {
			return b.at(0, wr(rdma.OpRead, 1, a.sge(0, 8)))
		}, rdma.StatusSuccess},
		"tries used up": {Config{RNRTimer: time.Second}, func(a, b *side) rdma.SendWR { return wr(rdma.OpSend, 1) },
			rdma.StatusRNRRetryExcErr},
	}
	for name, tc := range tests {
		for _, early := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					a, b, _ := newPair(t, tc.cfg, func(a, _ *setup) { a.param.RNRRetry = 1 })
					ok(t, a.sq.Arm(false))
					post := func() { a.post(tc.req(a, b)) }
					if early {
						post()
					} else {
						go func() { // the timer starts while Wait sleeps
							time.Sleep(time.Second)
							post()
						}()
					}
					ok(t, a.sq.Wait(context.Background()))
					same(t, "completion", outcomes(t, a.sq), all(tc.want, 1))
				})
			})
		}
	}
}
