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

func (q stingyQP) PostSend(wrs []rdma.SendWR) (int, error) { return some(q.QP.PostSend, wrs, q.most) }
func (q stingyQP) PostRecv(wrs []rdma.RecvWR) (int, error) { return some(q.QP.PostRecv, wrs, q.most) }

func some[W any](post func([]W) (int, error), wrs []W, most int) (int, error) {
	n, err := post(wrs[:min(most, len(wrs))])
	if err == nil && most < len(wrs) {
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

type rig struct{ near, far *session }

func hosts(t testing.TB, cfg memdev.Config) (near, far *memdev.Device) {
	t.Helper()
	f := memdev.NewFabric(cfg)
	return must(f.Open("near"))(t), must(f.Open("far"))(t)
}

// newRig bends the near device. It closes everything with the test; every object must go without complaint.
func newRig(t *testing.T, bend func(rdma.Device) rdma.Device, cfg transports.Config) rig {
	t.Helper()
	a, b := hosts(t, memdev.Config{})
	var d rdma.Device = a
	if bend != nil { // a listener wants the device's own queue pairs
		d = bend(d)
	}
	client, server := New(d), New(b)
	l := must(server.Listen(soon(t), "far:0", cfg))(t)
	got := make(chan transports.Session, 1)
	go func() {
		s, _, err := l.Accept(soon(t))
		if err != nil {
			t.Error(err)
		}
		got <- s
	}()
	r := rig{near: must(client.Dial(soon(t), l.Addr(), nil, cfg))(t).(*session)}
	r.far = (<-got).(*session)
	if err := client.Close(); !errors.Is(err, rdma.ErrBusy) {
		t.Errorf("close of a transport with an open session: %v, want %v", err, rdma.ErrBusy)
	}
	t.Cleanup(func() { closeAll(t, l, r.near, r.far, client, server) })
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
