package iwarp

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/softstack/mpa"
	"github.com/rdmaperf/rdmaperf/softstack/wiretest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// openFDs is the number of descriptors of this process.
func openFDs(t *testing.T) int {
	t.Helper()
	d := need(os.ReadDir("/proc/self/fd"))(t)
	return len(d)
}

// TestConnectFailures: every way a peer can fail to answer has its sentinel, and the attempt ends by the deadline.
func TestConnectFailures(t *testing.T) {
	serve := func(f func(c net.Conn)) func(t *testing.T) string {
		return func(t *testing.T) string {
			l := need(net.Listen("tcp", "127.0.0.1:0"))(t)
			var wg sync.WaitGroup
			t.Cleanup(func() { l.Close(); wg.Wait() })
			wg.Go(func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					c.SetDeadline(time.Now().Add(testTimeout))
					f(c)
					c.Close()
				}
			})
			return l.Addr().String()
		}
	}
	drain := func(c net.Conn) { io.Copy(io.Discard, c) }
	unreachable, protocol := []error{rdma.ErrUnreachable}, []error{rdma.ErrProtocol}
	late := []error{rdma.ErrUnreachable, context.DeadlineExceeded}
	for _, c := range []struct {
		name string
		addr func(t *testing.T) string
		want []error
	}{
		{"closed port", func(t *testing.T) string {
			l := need(net.Listen("tcp", "127.0.0.1:0"))(t)
			defer l.Close()
			return l.Addr().String()
		}, unreachable},
		{"no such host name", func(*testing.T) string { return "no.such.host.invalid:1" }, unreachable},
		{"bad address", func(*testing.T) string { return "127.0.0.1" }, unreachable},
		{"W-11 silent", serve(drain), late},
		{"half a reply, then silence", serve(func(c net.Conn) { c.Write(reply(nil).Bytes()[:22]); drain(c) }), late},
		{"closes at once", serve(func(c net.Conn) {}), unreachable},
		{"closes after the request", serve(func(c net.Conn) { c.Read(make([]byte, 64)) }), unreachable},
		{"half a reply, then fin", serve(func(c net.Conn) {
			c.Read(make([]byte, 64))
			c.Write(reply(nil).Bytes()[:22])
		}), unreachable},
		{"resets", serve(func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) }), unreachable},
		{"web server", serve(func(c net.Conn) {
			c.Read(make([]byte, 64))
			io.WriteString(c, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		}), protocol},
		{"ssh server", serve(func(c net.Conn) {
			io.WriteString(c, "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n")
			drain(c)
		}), protocol},
		{"W-08 echo server", serve(func(c net.Conn) { io.Copy(c, c) }), protocol},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEnd(t, Config{}, rdma.QPConfig{})
			limit := 300 * time.Millisecond
			if slices.Contains(c.want, error(rdma.ErrProtocol)) {
				limit = testTimeout // a busy machine may be longer about an answer
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			begin := time.Now()
			_, err := e.qp.Connect(ctx, c.addr(t), rdma.ConnParam{})
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("connect: %v, want %v", err, want)
				}
			}
			var op *rdma.OpError
			if !errors.As(err, &op) || op.Op != "connect" {
				t.Errorf("connect: %v is no OpError of connect", err)
			}
			if d := time.Since(begin); d > max(limit, testTimeout/6) {
				t.Errorf("connect took %v with a deadline of %v", d, limit)
			}
			if s := e.qp.State(); s != rdma.QPInit {
				t.Errorf("qp is %v, want INIT", s)
			}
		})
	}
}

// TestConnectCancelled: the context ends an attempt that has no deadline.
func TestConnectCancelled(t *testing.T) {
	l := need(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	e := newEnd(t, Config{}, rdma.QPConfig{})
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := e.qp.Connect(ctx, l.Addr().String(), rdma.ConnParam{}); !errors.Is(err, rdma.ErrUnreachable) {
		t.Errorf("connect: %v", err)
	}
}

// TestAcceptRefusesWrongQPs: the request survives and can still be accepted.
func TestAcceptRefusesWrongQPs(t *testing.T) {
	e, l := host(t, Config{})
	other := newEnd(t, Config{}, rdma.QPConfig{})
	a := newEnd(t, Config{}, rdma.QPConfig{})
	done := a.connecting(t, l.Addr(), rdma.ConnParam{})
	r := need(l.Accept(t.Context()))(t)
	dead := newEndOn(t, e.dev, rdma.QPConfig{})
	defer dead.free()
	must(t, dead.qp.Fail())
	for what, c := range map[string]struct {
		q    rdma.QP
		p    rdma.ConnParam
		want error
	}{
		"qp of another device":       {other.qp, rdma.ConnParam{}, rdma.ErrInvalid},
		"ird -1":                     {e.qp, rdma.ConnParam{IRD: -1}, rdma.ErrInvalid},
		"509 octets of private data": {e.qp, rdma.ConnParam{PrivateData: make([]byte, 509)}, rdma.ErrInvalid},
		"qp in ERR":                  {dead.qp, rdma.ConnParam{}, rdma.ErrState},
	} {
		if _, err := r.Accept(t.Context(), c.q, c.p); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	need(r.Accept(t.Context(), e.qp, rdma.ConnParam{}))(t)
	must(t, <-done)
	echoOnce(t, a, e)
	if _, err := a.qp.Connect(t.Context(), l.Addr(), rdma.ConnParam{}); !errors.Is(err, rdma.ErrState) {
		t.Errorf("second connect: %v", err)
	}
}

// TestBacklogRefuses: CM-12, requests beyond the backlog are refused at once, those within it wait.
func TestBacklogRefuses(t *testing.T) {
	e := newEnd(t, Config{}, rdma.QPConfig{})
	l := need(e.dev.Listen(t.Context(), "127.0.0.1:0", 2))(t)
	defer l.Close()
	var peers []*wiretest.Peer
	for i := range 5 {
		p := dial(t, l)
		must(t, p.WriteStartup(request(nil)))
		if i >= 2 {
			f := need(p.ReadStartup())(t)
			if !f.Reject {
				t.Errorf("request %d beyond the backlog was accepted", i)
			}
			continue
		}
		eventually(t, "request queued", func() bool { return l.(*listener).Waiting() == i+1 })
		peers = append(peers, p)
	}
	r := need(l.Accept(t.Context()))(t)
	need(r.Accept(t.Context(), e.qp, rdma.ConnParam{IRD: 1, ORD: 1}))(t)
	if f, err := peers[0].ReadStartup(); err != nil || f.Reject {
		t.Errorf("first request: %+v, %v", f, err)
	}
	must(t, l.Close()) // refuses the one that still waits
	if f, err := peers[1].ReadStartup(); err != nil || !f.Reject {
		t.Errorf("second request: %+v, %v", f, err)
	}
}

// TestListenerClose: it joins, frees the port, and wakes Accept.
func TestListenerClose(t *testing.T) {
	e, l := host(t, Config{})
	silent := dial(t, l)
	done := make(chan error, 1)
	go func() {
		_, err := l.Accept(context.Background())
		done <- err
	}()
	begin := time.Now()
	must(t, l.Close())
	if d := time.Since(begin); d > requestTimeout/2 {
		t.Errorf("close took %v: it waited for a silent peer", d)
	}
	if n, _ := l.(*listener).Reading(); n != 0 {
		t.Errorf("%d sockets are still waited for", n)
	}
	if err := <-done; !errors.Is(err, rdma.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if _, err := silent.ReadStartup(); !closed(err) {
		t.Errorf("silent peer: %v", err)
	}
	l2 := need(e.dev.Listen(t.Context(), l.Addr(), 1))(t)
	defer l2.Close()
	if _, err := e.dev.Listen(t.Context(), l2.Addr(), 1); !errors.Is(err, rdma.ErrAddrInUse) {
		t.Errorf("second listener on one port: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := l2.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("accept of nothing: %v", err)
	}
}

// TestFloodOfSilentPeers: hundreds of connections that say nothing neither keep a good client out nor pile up.
func TestFloodOfSilentPeers(t *testing.T) {
	e, l := host(t, Config{})
	e.postRecv(1, e.sge(0, 64))
	before := runtime.NumGoroutine()
	for range 400 {
		c := need(net.Dial("tcp", l.Addr()))(t)
		defer c.Close()
	}
	done := e.accept(l, rdma.ConnParam{})
	a := newEnd(t, Config{}, rdma.QPConfig{})
	ctx, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	need(a.qp.Connect(ctx, l.Addr(), rdma.ConnParam{}))(t)
	must(t, <-done)
	n, slots := l.(*listener).Reading()
	if n > slots || slots > 100 {
		t.Errorf("%d sockets wait in %d slots", n, slots)
	}
	if n := runtime.NumGoroutine() - before; n > 2*slots {
		t.Errorf("%d goroutines for a flood, with %d slots", n, slots)
	}
}

// TestManyCycles: CM-11, connections come and go without a trace.
func TestManyCycles(t *testing.T) {
	const cycles = 200
	a, b := newEnd(t, Config{}, rdma.QPConfig{}), newEnd(t, Config{}, rdma.QPConfig{})
	l := need(b.dev.Listen(t.Context(), "127.0.0.1:0", 4))(t)
	defer l.Close()
	acq := need(a.dev.NewCQ(64))(t)
	bcq := need(b.dev.NewCQ(64))(t)
	defer func() { must(t, acq.Close()); must(t, bcq.Close()) }()
	fds, routines := 0, 0
	var heap runtime.MemStats
	for i := range cycles {
		if i == cycles/10 { // warm
			eventually(t, "sockets to close", func() bool { return a.dev.bg.size()+b.dev.bg.size() == 0 })
			fds, routines = openFDs(t), runtime.NumGoroutine()
			runtime.GC()
			runtime.ReadMemStats(&heap)
		}
		aq := need(a.dev.NewQP(rdma.QPConfig{SendCQ: acq, RecvCQ: acq, SendDepth: 2}))(t)
		bq := need(b.dev.NewQP(rdma.QPConfig{SendCQ: bcq, RecvCQ: bcq, RecvDepth: 2}))(t)
		need(bq.PostRecv([]rdma.RecvWR{{ID: 1}, {ID: 2}}))(t)
		done := (&end{qp: bq}).accept(l, rdma.ConnParam{})
		need(aq.Connect(t.Context(), l.Addr(), rdma.ConnParam{}))(t)
		must(t, <-done)
		need(aq.PostSend([]rdma.SendWR{{ID: 1, Op: rdma.OpSend, Flags: rdma.Signaled}}))(t)
		switch i % 4 {
		case 0:
			must(t, aq.Disconnect(t.Context()))
		case 1:
			must(t, bq.Disconnect(t.Context()))
		case 2:
			must(t, aq.Fail())
		case 3: // close alone
		}
		must(t, aq.Close())
		must(t, bq.Close())
		for _, cq := range []rdma.CQ{acq, bcq} {
			for n := 1; n > 0; {
				n = need(cq.Poll(a.wcs))(t)
			}
		}
	}
	eventually(t, "sockets to close", func() bool { return a.dev.bg.size()+b.dev.bg.size() == 0 })
	if n := openFDs(t); n > fds+2 {
		t.Errorf("%d descriptors, %d before", n, fds)
	}
	if n := runtime.NumGoroutine(); n > routines+2 {
		t.Errorf("%d goroutines, %d before", n, routines)
	}
	was := heap.HeapAlloc
	runtime.GC()
	runtime.ReadMemStats(&heap)
	// Each connection has two buffers of 128 KiB at each end.
	if grown := int64(heap.HeapAlloc) - int64(was); grown > 10*4*128<<10 {
		t.Errorf("heap grew by %d KiB in %d cycles", grown>>10, cycles)
	}
	for _, c := range []rdma.CQ{acq, bcq} {
		for _, q := range c.(*cq).members {
			if q != nil {
				t.Error("a CQ still knows a closed QP")
			}
		}
	}
}

// size is how many QPs the background goroutine knows.
func (b *reactor) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.qps)
}

// TestAddresses: CM-15.
func TestAddresses(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:0", "[::1]:0", ":0", "localhost:0"} {
		if c, err := net.Listen("tcp", addr); err != nil {
			t.Logf("%s: %v", addr, err)
			continue // this host has no such address
		} else {
			c.Close()
		}
		e := newEnd(t, Config{}, rdma.QPConfig{})
		l := need(e.dev.Listen(t.Context(), addr, 1))(t)
		e.initiated(t, l, rdma.ConnParam{}, &mpa.Frame{Rev: 2, Enhanced: true})
		must(t, l.Close())
	}
}
