package memdev

import (
	"context"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

type dialing struct {
	a, b *side
	l    rdma.Listener
	done chan error
	got  rdma.ConnParam
}

func (d *dialing) connect(ctx context.Context, p rdma.ConnParam) {
	d.done = make(chan error, 1)
	go func() {
		got, err := d.a.qp.Connect(ctx, d.l.Addr(), p)
		d.got = got
		d.done <- err
	}()
}

func newDialing(t *testing.T) *dialing {
	f := NewFabric(Config{})
	d := &dialing{a: newSide(t, f, "a", ordinary()), b: newSide(t, f, "b", ordinary())}
	d.l = must(d.b.dev.Listen(soon(t), "", 4))(t)
	t.Cleanup(func() { ok(t, d.l.Close()) })
	return d
}

func TestConnectionLimits(t *testing.T) {
	d := newDialing(t)
	bad := []rdma.ConnParam{{PrivateData: make([]byte, 513)}, {IRD: -1}, {ORD: -1}, {IRD: 129}, {ORD: 129},
		{RNRRetry: -1}, {RNRRetry: 8}}
	for _, p := range bad {
		fails(t, fmt.Sprintf("Connect with %+v", p), errOf(d.a.qp.Connect(soon(t), d.l.Addr(), p)), rdma.ErrInvalid)
	}
	d.connect(soon(t), rdma.ConnParam{})
	r := must(d.l.Accept(soon(t)))(t)
	for _, p := range bad {
		fails(t, fmt.Sprintf("Accept with %+v", p), errOf(r.Accept(soon(t), d.b.qp, p)), rdma.ErrInvalid)
	}
	fails(t, "Accept with the QP of another device", errOf(r.Accept(soon(t), d.a.qp, rdma.ConnParam{})), rdma.ErrInvalid)
	fails(t, "Reject with too much", r.Reject(soon(t), make([]byte, 513)), rdma.ErrInvalid)
	must(r.Accept(soon(t), d.b.qp, rdma.ConnParam{}))(t) // still possible
	ok(t, <-d.done)
	fails(t, "Connect of a connected QP", errOf(d.a.qp.Connect(soon(t), d.l.Addr(), rdma.ConnParam{})), rdma.ErrState)
}

func TestNobodyListensThere(t *testing.T) {
	d := newDialing(t)
	other := newSide(t, NewFabric(Config{}), "other", ordinary())
	for addr, q := range map[string]rdma.QP{"nowhere:1": d.a.qp, d.l.Addr(): other.qp} { // the latter of another fabric
		fails(t, "Connect to "+addr, errOf(q.Connect(soon(t), addr, rdma.ConnParam{})), rdma.ErrUnreachable)
		same(t, "state", q.State(), rdma.QPInit)
	}
}

func TestUnansweredRequests(t *testing.T) {
	tests := []struct {
		name  string
		limit time.Duration // of the caller's context; 0 none
		want  []error
		after time.Duration
	}{
		{"without a deadline end after 10 s", 0, []error{rdma.ErrUnreachable}, 10 * time.Second},
		{"end with the caller's deadline", time.Second, []error{rdma.ErrUnreachable, context.DeadlineExceeded},
			time.Second},
		{"are refused after 10 s", time.Minute, []error{rdma.ErrRejected}, 10 * time.Second},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDialing(t)
				ctx := context.Background()
				if tc.limit > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.limit)
					defer cancel()
				}
				start := time.Now()
				d.connect(ctx, rdma.ConnParam{})
				r := must(d.l.Accept(ctx))(t)
				err := <-d.done
				for _, want := range tc.want {
					fails(t, "Connect", err, want)
				}
				same(t, "Connect took", time.Since(start), tc.after)
				if _, err := r.Accept(context.Background(), d.b.qp, rdma.ConnParam{}); err == nil {
					t.Error("a request that is gone was accepted")
				}
				same(t, "states", []rdma.QPState{d.a.qp.State(), d.b.qp.State()},
					[]rdma.QPState{rdma.QPInit, rdma.QPInit})
			})
		})
	}
}

func TestBacklogBoundsWaitingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := NewFabric(Config{})
		b := newSide(t, f, "b", ordinary())
		l := must(b.dev.Listen(context.Background(), "", 2))(t)
		done := make(chan error, 3)
		for range 3 {
			a := newSide(t, f, "", ordinary())
			go func() { done <- errOf(a.qp.Connect(context.Background(), l.Addr(), rdma.ConnParam{})) }()
		}
		synctest.Wait()
		fails(t, "the third of two", <-done, rdma.ErrRejected)
		ok(t, l.Close())
		for range 2 {
			fails(t, "waiting when the listener closes", <-done, rdma.ErrRejected)
		}
	})
}

func TestAcceptEndsWithContextAndClose(t *testing.T) {
	d := newDialing(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	fails(t, "Accept", errOf(d.l.Accept(ctx)), context.Canceled)
	errs := make(chan error)
	for range 2 {
		go func() { errs <- errOf(d.l.Accept(soon(t))) }()
	}
	ok(t, d.l.Close())
	for range 2 {
		fails(t, "Accept", <-errs, net.ErrClosed)
	}
}

func TestAddresses(t *testing.T) {
	f := NewFabric(Config{})
	dev := must(f.Open("host"))(t)
	tests := []struct{ listen, want string }{
		{"mem:whatever", "mem:whatever"},
		{"127.0.0.1:7471", "127.0.0.1:7471"},
		{"", "host:49152"},
		{":0", "host:49153"},
		{"127.0.0.1:0", "127.0.0.1:49154"},
		{":7471", "host:7471"},
		{"[::1]:0", "[::1]:49155"},
	}
	for _, tc := range tests {
		l := must(dev.Listen(soon(t), tc.listen, 1))(t)
		defer l.Close()
		same(t, "address of Listen("+tc.listen+")", l.Addr(), tc.want)
	}
	fails(t, "second Listen", errOf(dev.Listen(soon(t), "mem:whatever", 1)), rdma.ErrAddrInUse)
	fails(t, "backlog -1", errOf(dev.Listen(soon(t), "", -1)), rdma.ErrInvalid)
	l := must(f.listeners["mem:whatever"], nil)(t)
	ok(t, l.Close())
	ok(t, l.Close())
	must(dev.Listen(soon(t), "mem:whatever", 0))(t)
}

func TestDeathOfADeviceEndsItsConnectsAndListeners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialing(t)
		d.connect(context.Background(), rdma.ConnParam{})
		r := must(d.l.Accept(context.Background()))(t)
		d.a.dev.Kill()
		fails(t, "Connect", <-d.done, rdma.ErrState)
		fails(t, "Accept of a dead peer's request", errOf(r.Accept(context.Background(), d.b.qp, rdma.ConnParam{})),
			rdma.ErrState)
		d.b.dev.Kill()
		d.a = newSide(t, d.b.dev.fab, "c", ordinary())
		d.connect(context.Background(), rdma.ConnParam{})
		fails(t, "Connect to a dead device", <-d.done, rdma.ErrUnreachable)
	})
}

func TestConnectingNeedsTheInitState(t *testing.T) {
	d := newDialing(t)
	d.connect(soon(t), rdma.ConnParam{})
	r := must(d.l.Accept(soon(t)))(t)
	used := newSide(t, d.b.dev.fab, "used", ordinary())
	ok(t, used.qp.Fail())
	fails(t, "Connect in ERR", errOf(used.qp.Connect(soon(t), d.l.Addr(), rdma.ConnParam{})), rdma.ErrState)
	spare := must(d.b.dev.NewQP(rdma.QPConfig{SendCQ: d.b.sq, RecvCQ: d.b.rq}))(t)
	ok(t, spare.Fail())
	fails(t, "Accept with a QP in ERR", errOf(r.Accept(soon(t), spare, rdma.ConnParam{})), rdma.ErrState)
	ok(t, spare.Close())
	fails(t, "Accept with a closed QP", errOf(r.Accept(soon(t), spare, rdma.ConnParam{})), rdma.ErrClosed)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for name, err := range map[string]error{"Accept": errOf(r.Accept(ended, d.b.qp, rdma.ConnParam{})),
		"Connect": errOf(d.b.qp.Connect(ended, d.l.Addr(), rdma.ConnParam{})),
		"Listen":  errOf(d.b.dev.Listen(ended, "", 1)), "Reject": r.Reject(ended, nil)} {
		fails(t, name+" with an ended context", err, context.Canceled)
	}
	must(r.Accept(soon(t), d.b.qp, rdma.ConnParam{}))(t)
	ok(t, <-d.done)
}
