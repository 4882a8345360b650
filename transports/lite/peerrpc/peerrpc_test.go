package peerrpc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// echo answers with the request; method 1 fails, method 2 answers too much.
type echo struct{}

func (echo) ServeCall(s *transports.Served) error {
	switch s.Method {
	case 1:
		return &transports.CallError{Code: transports.CallNotFound, Text: "no such thing"}
	case 2:
		s.Response = make([]byte, 1<<20)
		return nil
	}
	s.Response = s.Request.AppendTo(nil)
	return nil
}

type world struct {
	server transports.CallServer
	client *Stack
	conn   transports.CallConn
}

func devices(t *testing.T) map[string][2]rdma.Device {
	f := memdev.NewFabric(memdev.Config{})
	var m, w [2]rdma.Device
	for i := range 2 {
		m[i] = expect.Get(f.Open(fmt.Sprint("n", i)))(t)
		w[i] = expect.Get(iwarp.Open(iwarp.Config{}))(t)
	}
	return map[string][2]rdma.Device{"mem": m, "iwarp": w}
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func everywhere(t *testing.T, cfg transports.CallConfig, h transports.CallHandler, f func(t *testing.T, w *world)) {
	for _, form := range []Form{Send, Write} {
		for name, devs := range devices(t) {
			t.Run(form.String()+" "+name, func(t *testing.T) {
				w := &world{}
				var stacks [2]*Stack
				for i := range devs {
					stacks[i] = expect.Get(New(devs[i], form))(t)
				}
				at := "127.0.0.1:0"
				if name == "mem" {
					at = "n0:0"
				}
				w.server = expect.Get(stacks[0].ListenCalls(soon(t), at, cfg, h))(t)
				w.client = stacks[1]
				w.conn = expect.Get(w.client.DialCalls(soon(t), w.server.Addr(), cfg))(t)
				f(t, w)
				expect.OK(t, errors.Join(w.conn.Close(), w.server.Close(), stacks[1].Close(), stacks[0].Close()))
			})
		}
	}
}

func callerOf(t *testing.T, w *world, cfg transports.CallerConfig) transports.Caller {
	t.Helper()
	k := expect.Get(w.conn.Caller(soon(t), cfg))(t)
	t.Cleanup(func() { k.Close() })
	return k
}

func wants(t *testing.T, err error, code transports.CallCode) {
	t.Helper()
	var e *transports.CallError
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%v, want %v", err, code)
	}
}

// Turns wrap at 255, so that there are more calls of a caller than that.
func TestEveryCallerGetsItsOwnAnswers(t *testing.T) {
	cfg := transports.CallConfig{MaxRequest: 70_000, MaxResponse: 70_000, Callers: 3, Conns: 1}
	everywhere(t, cfg, echo{}, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		for n := range cfg.Callers {
			k := callerOf(t, w, transports.CallerConfig{Timeout: 20 * time.Second})
			all.Go(func() {
				for i := range 600 {
					size := (i*i*37 + n) % 300
					if i%100 == 99 {
						size = cfg.MaxRequest
					}
					want := make([]byte, size)
					for j := range want {
						want[j] = byte(i + j*n)
					}
					c := transports.Call{Request: want}
					if err := k.Call(&c); err != nil {
						t.Errorf("caller %d, call %d: %v", n, i, err)
						break
					}
					if got := c.Response.AppendTo(nil); !bytes.Equal(got, want) {
						t.Errorf("caller %d, call %d: %d bytes came back changed", n, i, size)
						break
					}
				}
				if err := k.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

func TestErrorsHaveTheirCodes(t *testing.T) {
	cfg := transports.CallConfig{MaxRequest: 100, MaxResponse: 100, Callers: 1, Conns: 1}
	everywhere(t, cfg, echo{}, func(t *testing.T, w *world) {
		k := callerOf(t, w, transports.CallerConfig{Timeout: 20 * time.Second})
		wants(t, k.Call(&transports.Call{Method: 1}), transports.CallNotFound)
		wants(t, k.Call(&transports.Call{Method: 2}), transports.CallResourceExhausted)
		wants(t, k.Call(&transports.Call{Request: make([]byte, 101)}), transports.CallResourceExhausted)
		wants(t, k.Call(&transports.Call{Method: 16}), transports.CallUnimplemented)
		c := transports.Call{Request: []byte("still works")}
		if err := k.Call(&c); err != nil || string(c.Response.AppendTo(nil)) != "still works" {
			t.Errorf("%v, %q", err, c.Response)
		}
		expect.Is(t, "one caller too many", expect.Err(w.conn.Caller(soon(t), transports.CallerConfig{})), rdma.ErrQueueFull)
		if _, err := w.conn.Caller(soon(t), transports.CallerConfig{Mode: transports.CallOneWay}); !errors.Is(err,
			rdma.ErrNotSupported) {
			t.Errorf("messages one way: %v", err)
		}
	})
}

// gate holds the first call until it is opened.
type gate struct{ open chan struct{} }

func (g gate) ServeCall(s *transports.Served) error {
	<-g.open
	s.Response = s.Request.AppendTo(nil)
	return nil
}

func TestALateAnswerIsNotTakenForTheNext(t *testing.T) {
	cfg := transports.CallConfig{MaxRequest: 100, MaxResponse: 100, Callers: 1, Conns: 1}
	g := gate{make(chan struct{})}
	opened := false
	everywhere(t, cfg, g, func(t *testing.T, w *world) {
		if opened { // one gate for all
			return
		}
		k := callerOf(t, w, transports.CallerConfig{Timeout: 30 * time.Millisecond})
		wants(t, k.Call(&transports.Call{Request: []byte("first")}), transports.CallDeadlineExceeded)
		close(g.open)
		opened = true
		c := transports.Call{Request: []byte("second")}
		err := k.Call(&c)
		for end := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(end); err = k.Call(&c) {
			wants(t, err, transports.CallDeadlineExceeded) // a busy machine
		}
		if got := string(c.Response.AppendTo(nil)); err != nil || got != "second" {
			t.Errorf("%v, %q", err, got)
		}
		k.Close()
	})
}

// The end of either end ends calls. A caller whose call failed may never be closed: Close waits for calls under way
// alone.
func TestTheEndOfAConnectionEndsCalls(t *testing.T) {
	cfg := transports.CallConfig{MaxRequest: 100, MaxResponse: 100, Callers: 1, Conns: 1}
	for _, ends := range []struct {
		of   func(w *world) interface{ Close() error }
		code transports.CallCode
	}{
		{func(w *world) interface{ Close() error } { return w.server }, transports.CallUnavailable},
		{func(w *world) interface{ Close() error } { return w.conn }, transports.CallCanceled},
	} {
		everywhere(t, cfg, echo{}, func(t *testing.T, w *world) {
			k := callerOf(t, w, transports.CallerConfig{Timeout: 20 * time.Second})
			expect.OK(t, k.Call(&transports.Call{Request: []byte("x")}))
			expect.OK(t, ends.of(w).Close())
			wants(t, k.Call(&transports.Call{Request: []byte("x")}), ends.code)
			expect.OK(t, k.Close())
		})
	}
}

func TestOtherSizesAreRefused(t *testing.T) {
	cfg := transports.CallConfig{MaxRequest: 100, MaxResponse: 100, Callers: 1, Conns: 4}
	everywhere(t, cfg, echo{}, func(t *testing.T, w *world) {
		other := cfg
		other.MaxRequest = 200
		if c, err := w.client.DialCalls(soon(t), w.server.Addr(), other); err == nil {
			c.Close()
			t.Error("the server took a client whose cells are others")
		}
	})
}

// A client that says a length or a caller that does not exist loses its connection, and
// another one works.
func TestAProtocolErrorEndsThatConnectionAlone(t *testing.T) {
	cfg := transports.CallConfig{MaxRequest: 100, MaxResponse: 100, Callers: 1, Conns: 2}
	everywhere(t, cfg, echo{}, func(t *testing.T, w *world) {
		for _, wrong := range []header{{len: 1 << 30}, {slot: 9}, {what: 0xf0}} {
			bad, err := w.client.DialCalls(soon(t), w.server.Addr(), cfg)
			for end := time.Now().Add(20 * time.Second); err != nil && time.Now().Before(end); { // the last one goes
				time.Sleep(time.Millisecond)
				bad, err = w.client.DialCalls(soon(t), w.server.Addr(), cfg)
			}
			expect.OK(t, err)
			c := bad.(*conn)
			put := wrong
			put.turn = 1
			c.protocolError(&put)
			// A request behind it would lie in the same cell: the end is waited for first.
			for end := time.Now().Add(20 * time.Second); c.qp.State() != rdma.QPErr; c.poll() {
				if time.Now().After(end) {
					t.Fatalf("the server lives with %+v", wrong)
				}
			}
			k := expect.Get(bad.Caller(soon(t), transports.CallerConfig{Timeout: 20 * time.Second}))(t)
			wants(t, k.Call(&transports.Call{}), transports.CallUnavailable)
			k.Close()
			bad.Close()
		}
		k := callerOf(t, w, transports.CallerConfig{Timeout: 20 * time.Second})
		expect.OK(t, k.Call(&transports.Call{Request: []byte("x")}))
	})
}

// protocolError posts a header alone.
func (c *conn) protocolError(h *header) {
	b := c.out(0)
	in := len(b) - headerLen
	if c.stack.form == Write { // where the next request does not lie
		in = 0
	}
	h.put(b[in:])
	at := uint64(c.callers*c.inCell + in)
	wr := rdma.SendWR{ID: sendID, Op: rdma.OpSend, Flags: rdma.Signaled, NumSGE: 1}
	if c.stack.form == Write {
		wr.Op, wr.RKey, wr.RemoteAddr = rdma.OpWrite, c.peer.RKey, c.peer.Addr+uint64(c.outCell-headerLen)
		c.turns[0], c.next = h.turn, (c.next+1)%c.callers
	}
	wr.SGE[0] = rdma.SGE{Addr: c.mr.Addr() + at, Len: headerLen, LKey: c.mr.LKey()}
	if _, err := c.qp.PostSend([]rdma.SendWR{wr}); err != nil {
		panic(err)
	}
}

func TestACallAllocatesNothing(t *testing.T) {
	cfg := transports.CallConfig{MaxRequest: 64, MaxResponse: 64, Callers: 1, Conns: 1}
	everywhere(t, cfg, fixed{}, func(t *testing.T, w *world) {
		k := callerOf(t, w, transports.CallerConfig{})
		c := transports.Call{Request: make([]byte, 64)}
		if n := testing.AllocsPerRun(200, func() {
			expect.OK(t, k.Call(&c))
		}); n > 0 {
			t.Errorf("%v allocations a call", n)
		}
	})
}

type fixed struct{}

var answer [64]byte

func (fixed) ServeCall(s *transports.Served) error { s.Response = answer[:]; return nil }

func FuzzParsers(f *testing.F) {
	g := greeting{Callers: 1}
	f.Add(g.encode())
	f.Add(make([]byte, headerLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := parseGreeting(b, [8]byte{}); err == nil && (g.Callers == 0 || g.Form >= numForms ||
			g.Addr+g.Len < g.Addr) {
			t.Errorf("greeting %+v", g)
		}
		if h, err := parseHeader(b, 100, 4); err == nil && (h.len > 100 || h.slot > 3) {
			t.Errorf("header %+v", h)
		}
	})
}

// slowAccept is a device whose requests are accepted at once, which the listener learns when hold ends.
type slowAccept struct {
	rdma.Device
	accepted, hold chan struct{}
}

func (d slowAccept) Listen(ctx context.Context, addr string, backlog int) (rdma.Listener, error) {
	l, err := d.Device.Listen(ctx, addr, backlog)
	return slowListener{l, d}, err
}

type slowListener struct {
	rdma.Listener
	of slowAccept
}

func (l slowListener) Accept(ctx context.Context) (rdma.ConnRequest, error) {
	req, err := l.Listener.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return slowRequest{req, l.of}, nil
}

type slowRequest struct {
	rdma.ConnRequest
	of slowAccept
}

func (r slowRequest) Accept(ctx context.Context, qp rdma.QP, p rdma.ConnParam) (rdma.ConnParam, error) {
	got, err := r.ConnRequest.Accept(ctx, qp, p)
	close(r.of.accepted)
	<-r.of.hold
	return got, err
}

// A connection that is accepted while the server ends is closed with it: nothing stays on the device.
func TestAServerClosesWhatItAcceptedMeanwhile(t *testing.T) {
	cfg := transports.CallConfig{MaxRequest: 100, MaxResponse: 100, Callers: 1, Conns: 1}
	for name, devs := range devices(t) {
		t.Run(name, func(t *testing.T) {
			slow := slowAccept{devs[0], make(chan struct{}), make(chan struct{})}
			at := "127.0.0.1:0"
			if name == "mem" {
				at = "n0:0"
			}
			near := expect.Get(New(slow, Send))(t)
			v := expect.Get(near.ListenCalls(soon(t), at, cfg, echo{}))(t)
			client := expect.Get(New(devs[1], Send))(t)
			conn := expect.Get(client.DialCalls(soon(t), v.Addr(), cfg))(t)
			<-slow.accepted
			closed := make(chan error, 1)
			go func() { closed <- v.Close() }()
			<-v.(*server).ctx.Done()
			time.Sleep(50 * time.Millisecond) // the goroutine that serves has left by then
			close(slow.hold)
			expect.OK(t, errors.Join(<-closed, conn.Close(), client.Close(), near.Close()))
		})
	}
}
