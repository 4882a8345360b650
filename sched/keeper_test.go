package sched_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/sched"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// paced carries out one request at a poll of the queue below, at most each 150 us: some looks find nothing.
type paced struct{ *scriptDevice }

type pacedCQ struct {
	*nullCQ
	dev  *scriptDevice
	last time.Time
}

func (d paced) NewCQ(depth int) (rdma.CQ, error) {
	c, err := d.scriptDevice.NewCQ(depth)
	return &pacedCQ{nullCQ: c.(*nullCQ), dev: d.scriptDevice}, err
}

func (d paced) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	cfg.SendCQ = cfg.SendCQ.(*pacedCQ).nullCQ
	return d.scriptDevice.NewQP(cfg)
}

func (c *pacedCQ) Poll(dst []rdma.WC) (int, error) {
	if now := time.Now(); now.Sub(c.last) >= 150*time.Microsecond {
		c.dev.qps[0].carryOut(1)
		c.last = now
	}
	return c.nullCQ.Poll(dst)
}

// What an application posted goes on although it does something else: soon after it is seen to
// be away, and without a pause of the usual length between two slices. Each time anew.
func TestWhatWaitsGoesOnWithoutTheApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dev := newScript(false)
		tier := wrapped(t, paced{dev}, sched.Config{Slice: kib, Window: kib})
		mem, err := rdma.Alloc(2 * home)
		if err != nil {
			t.Fatal(err)
		}
		defer mem.Free()
		cq, err := tier.NewCQ(16)
		if err != nil {
			t.Fatal(err)
		}
		q, err := tier.NewQP(rdma.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 8})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Connect(t.Context(), "", rdma.ConnParam{IRD: 4, ORD: 4}); err != nil {
			t.Fatal(err)
		}
		r := &rig{t: t, tier: tier, qp: q, cq: cq, mem: mem, far: dev.qps[0]}
		r.far.failAfter = -1
		n := 0
		r.far.onPost = func(w *rdma.SendWR) {
			if w.RKey != 0 {
				n++
			}
		}
		for round := 1; round <= 3; round++ {
			n = 0
			r.post(r.wr(round, rdma.OpWrite, 0, 64*kib))
			time.Sleep(50 * time.Millisecond) // two looks 10 ms apart, and 64 slices
			synctest.Wait()
			if n != 64 {
				t.Errorf("round %d: %d slices of 64 in 50 ms", round, n)
			}
			time.Sleep(time.Second)
			if ids, _ := told(r.poll()); len(ids) != 1 || ids[0] != uint64(round) {
				t.Errorf("round %d: completions %v", round, ids)
			}
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		if err := tier.Close(); err != nil {
			t.Error(err)
		}
	})
}
