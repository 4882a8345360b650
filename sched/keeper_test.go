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

// paced is a device that carries out one request at a poll, at most each 150 us: some looks find nothing.
func paced() *scriptDevice {
	d := newScript(false)
	d.onPoll = func(c *nullCQ) {
		c.polls.Add(1)
		if now := time.Now(); now.Sub(c.last) >= 150*time.Microsecond {
			d.qps[0].carryOut(1)
			c.last = now
		}
	}
	return d
}

func polls(c rdma.CQ) int64 { return sched.BelowCQ(c).(*nullCQ).polls.Load() }

// What waits goes on soon after its application is away, and without long pauses between slices.
func TestWhatWaitsGoesOnWithoutTheApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := paced()
		r := newRigOver(t, dev, wrapped(t, dev, sched.Config{Slice: kib, Window: kib}), 8, 4)
		for round := 1; round <= 3; round++ {
			r.seen = nil
			r.post(r.wr(round, rdma.OpWrite, 0, 64*kib))
			time.Sleep(50 * time.Millisecond) // two looks 10 ms apart, and 64 slices
			synctest.Wait()
			if len(r.seen) != 64 {
				t.Errorf("round %d: %d slices of 64 in 50 ms", round, len(r.seen))
			}
			before := polls(r.cq)
			time.Sleep(time.Second)
			synctest.Wait()
			if n := polls(r.cq) - before; n > 0 {
				t.Errorf("round %d: %d looks while nothing waits", round, n)
			}
			if ids, _ := told(r.poll()); len(ids) != 1 || ids[0] != uint64(round) {
				t.Errorf("round %d: completions %v", round, ids)
			}
		}
		r.close()
	})
}

// loopedApart is a rig with a keeper that cuts sends to itself, with a queue of its own for receives.
func loopedApart(t *testing.T, cfg sched.Config) (*rig, uint32) {
	t.Helper()
	dev := paced()
	dev.loop, dev.apart = true, true
	r := newRigOver(t, dev, wrapped(t, dev, cfg), 16, 4)
	return r, r.register(dev)
}

func (r *rig) close() {
	r.t.Helper()
	must(r.t, r.qp.Close())
	must(r.t, r.tier.Close())
}

// What a peer may send is looked for each 10 ms and no sooner, while nothing comes.
func TestAnIdleConnectionIsLookedAtSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := loopedApart(t, cutConfig)
		synctest.Wait()
		sends, receives := polls(r.cq), polls(r.in)
		time.Sleep(time.Second)
		synctest.Wait()
		sends, receives = polls(r.cq)-sends, polls(r.in)-receives
		if sends < 90 || sends > 110 || receives < 90 || receives > 110 {
			t.Errorf("%d looks for what was sent and %d for what came in a second, want about 100", sends, receives)
		}
		r.close()
	})
}

// Sends go on though the peer does not poll, as what arrived is taken out of the ring.
func TestRoomComesBackWithoutTheApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := cutConfig
		cfg.Room = 8 * kib
		r, key := loopedApart(t, cfg)
		for i := range 4 {
			r.receive(101+i, i*8*kib, 8*kib, key)
		}
		r.end()
		for i := range 4 {
			r.post(r.wr(1+i, rdma.OpSend, 0, 6*kib))
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		var wcs [8]rdma.WC
		n, err := r.in.Poll(wcs[:])
		if n != 4 || err != nil {
			t.Errorf("%d messages arrived, %v, want 4", n, err)
		}
		for i, wc := range wcs[:n] {
			if wc.ID != uint64(101+i) || wc.ByteLen != 6*kib {
				t.Errorf("message %d: %+v", i, wc)
			}
		}
		r.close()
	})
}

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
