package sched_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// While nothing comes, Disconnect looks each 50 us and no sooner for room for what waits, until its time is over.
func TestDisconnectPausesBetweenLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := paced()
		dev.loop = true // without a receive nothing is carried out
		r := newRigOn(t, dev, sched.Config{Slice: kib, Window: 2 * kib}, 8, 4)
		for i := range 3 {
			r.post(r.wr(1+i, rdma.OpSend, 0, kib))
		}
		before := polls(r.cq)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if err := r.qp.Disconnect(ctx); err != nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("%v, %v", err, ctx.Err())
		}
		if n := polls(r.cq) - before; n < 190 || n > 210 {
			t.Errorf("%d looks in 10 ms, want about 200", n)
		}
		r.close()
	})
}
