package direct

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// bent is a device with other abilities, or with another kind of queue pair.
type bent struct {
	rdma.Device
	caps   func(*rdma.Caps)
	stingy int            // work requests a call; 0 any number
	deeper int            // places that each queue has beyond what was asked
	seen   *[]rdma.SendWR // keeps what is posted
}

func (b bent) Caps() rdma.Caps {
	c := b.Device.Caps()
	if b.caps != nil {
		b.caps(&c)
	}
	return c
}

func (b bent) NewQP(cfg rdma.QPConfig) (rdma.QP, error) {
	cfg.SendDepth += b.deeper
	cfg.RecvDepth += b.deeper
	qp, err := b.Device.NewQP(cfg)
	if err != nil {
		return nil, err
	}
	if b.stingy > 0 {
		qp = stingyQP{qp, b.stingy}
	}
	if b.seen != nil {
		qp = watchedQP{qp, b.seen}
	}
	return qp, nil
}

// watchedQP keeps a copy of every send work request.
type watchedQP struct {
	rdma.QP
	seen *[]rdma.SendWR
}

func (q watchedQP) PostSend(wrs []rdma.SendWR) (int, error) {
	*q.seen = append(*q.seen, wrs...)
	return q.QP.PostSend(wrs)
}

// stingyQP refuses the rest of a long list, as a full queue does.
type stingyQP struct {
	rdma.QP
	most int
}

func (q stingyQP) PostSend(wrs []rdma.SendWR) (int, error) {
	if len(wrs) <= q.most {
		return q.QP.PostSend(wrs)
	}
	n, err := q.QP.PostSend(wrs[:q.most])
	if err == nil {
		err = rdma.ErrQueueFull
	}
	return n, err
}

func (q stingyQP) PostRecv(wrs []rdma.RecvWR) (int, error) {
	if len(wrs) <= q.most {
		return q.QP.PostRecv(wrs)
	}
	n, err := q.QP.PostRecv(wrs[:q.most])
	if err == nil {
		err = rdma.ErrQueueFull
	}
	return n, err
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// rig is a pair of sessions on devices of one fabric.
type rig struct {
	near, far *session
}

// newRig bends the near device. It closes everything with the test; every object must go without complaint.
func newRig(t *testing.T, bend func(rdma.Device) rdma.Device, cfg transports.Config) rig {
	t.Helper()
	f := memdev.NewFabric(memdev.Config{})
	var ts [2]transports.Transport
	for i, name := range []string{"near", "far"} {
		var d rdma.Device = must(f.Open(name))(t)
		if bend != nil && i == 0 { // a listener wants the device's own queue pairs
			d = bend(d)
		}
		ts[i] = New(d)
	}
	l := must(ts[1].Listen(soon(t), "far:0", cfg))(t)
	got := make(chan transports.Session, 1)
	go func() {
		s, _, err := l.Accept(soon(t))
		if err != nil {
			t.Error(err)
		}
		got <- s
	}()
	r := rig{near: must(ts[0].Dial(soon(t), l.Addr(), nil, cfg))(t).(*session)}
	r.far = (<-got).(*session)
	if err := ts[0].Close(); !errors.Is(err, rdma.ErrBusy) {
		t.Errorf("close of a transport with an open session: %v, want %v", err, rdma.ErrBusy)
	}
	t.Cleanup(func() { closeAll(t, l, r.near, r.far, ts[0], ts[1]) })
	return r
}

func closeAll(t *testing.T, all ...interface{ Close() error }) {
	t.Helper()
	for _, c := range all {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// collect polls s until n Dones are there.
func collect(t *testing.T, s *session, n int) []transports.Done {
	t.Helper()
	dst := make([]transports.Done, n)
	got := 0
	for end := time.Now().Add(30 * time.Second); got < n; {
		k, err := s.Poll(dst[got:])
		if err != nil {
			t.Fatalf("poll after %d of %d: %v", got, n, err)
		}
		if got += k; time.Now().After(end) {
			t.Fatalf("%d of %d completions", got, n)
		}
	}
	return dst
}
