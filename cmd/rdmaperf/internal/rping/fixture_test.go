package rping

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// testTimeout bounds each wait of a test's endpoints. It is long, because a busy
// machine must not fail a test; tests about timeouts bring their own.
const testTimeout = 20 * time.Second

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		check(t, err)
		return v
	}
}

// providers are what the protocol is tested over.
var providers = []struct {
	name string
	open func(t testing.TB) rig
}{
	{"mem", func(t testing.TB) rig { return memRig(t, memdev.Config{}) }},
	{"iwarp", func(t testing.TB) rig {
		return newRig(t, must(iwarp.Open(iwarp.Config{}))(t), must(iwarp.Open(iwarp.Config{}))(t), "127.0.0.1:0")
	}},
	{"iwarp rev 1", func(t testing.TB) rig {
		return newRig(t, must(iwarp.Open(iwarp.Config{}))(t), must(iwarp.Open(iwarp.Config{Revision: 1}))(t), "127.0.0.1:0")
	}},
	{"iwarp nocrc markers p2p", func(t testing.TB) rig {
		return newRig(t, must(iwarp.Open(iwarp.Config{NoCRC: true, Markers: true}))(t),
			must(iwarp.Open(iwarp.Config{NoCRC: true, Markers: true, PeerToPeer: true}))(t), "127.0.0.1:0")
	}},
}

func overAll(t *testing.T, test func(t *testing.T, r rig)) { over(t, len(providers), test) }

// overTwo leaves out what iWARP has besides.
func overTwo(t *testing.T, test func(t *testing.T, r rig)) { over(t, 2, test) }

func over(t *testing.T, n int, test func(t *testing.T, r rig)) {
	for _, p := range providers[:n] {
		t.Run(p.name, func(t *testing.T) { test(t, p.open(t)) })
	}
}

// rig is a listening device and one that dials. Their Close fails with ErrBusy
// when an endpoint left anything open, so every test checks for leaks.
type rig struct {
	passive, active rdma.Device
	ln              rdma.Listener
}

func memRig(t testing.TB, cfg memdev.Config) rig {
	f := memdev.NewFabric(cfg)
	return newRig(t, must(f.Open("passive"))(t), must(f.Open("active"))(t), "passive:0")
}

func newRig(t testing.TB, passive, active rdma.Device, addr string) rig {
	t.Cleanup(func() {
		for _, d := range []rdma.Device{active, passive} {
			if err := d.Close(); err != nil {
				t.Errorf("close %s: %v", d.Name(), err)
			}
		}
	})
	ln := must(passive.Listen(context.Background(), addr, 16))(t)
	t.Cleanup(func() {
		if err := ln.Close(); err != nil {
			t.Errorf("close listener: %v", err)
		}
	})
	return rig{passive, active, ln}
}

// logBook collects what a server logs.
type logBook struct {
	mu    sync.Mutex
	b     bytes.Buffer
	wrote chan struct{} // has room for one
}

func (l *logBook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.wrote <- struct{}{}:
	default:
	}
	return l.b.Write(p)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// wants waits until text was logged n times.
func (l *logBook) wants(t *testing.T, n int, text string) {
	t.Helper()
	limit := time.After(10 * time.Second)
	for strings.Count(l.String(), text) < n {
		select {
		case <-l.wrote:
		case <-limit:
			t.Fatalf("%q was not logged %d times:\n%s", text, n, l)
		}
	}
}

// serve runs a server until the test ends, or until the returned function ends it.
func serve(t *testing.T, r rig, cfg ServerConfig) (*logBook, func()) {
	t.Helper()
	book := &logBook{wrote: make(chan struct{}, 1)}
	cfg.Log = book.logger()
	if cfg.Timeout == 0 {
		cfg.Timeout = testTimeout
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, r.passive, r.ln, cfg) }()
	end := sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Serve = %v, want nil after it was cancelled", err)
			}
		case <-time.After(testTimeout):
			t.Error("Serve did not end")
		}
	})
	t.Cleanup(end)
	return book, end
}

// pingOK runs a good client and checks its summary.
func pingOK(t *testing.T, r rig, cfg ClientConfig) {
	t.Helper()
	cfg.Addr, cfg.Timeout, cfg.Validate = r.ln.Addr(), testTimeout, true
	sum, err := Ping(context.Background(), r.active, cfg)
	size := cfg.Size
	if size == 0 {
		size = DefaultSize
	}
	if err != nil || sum.Pings != cfg.Count || sum.Bytes != int64(cfg.Count)*int64(size) {
		t.Errorf("Ping(%d x %d bytes) = %+v, %v", cfg.Count, size, sum, err)
	}
}

// badClient is a connected endpoint that a test misuses by hand.
type badClient struct {
	*endpoint
	t   *testing.T
	buf registration // 4096 bytes, all rights
}

func dial(t *testing.T, r rig, p rdma.ConnParam) *badClient {
	t.Helper()
	m := must(newMemory(r.active))(t)
	e := must(newEndpoint(m, rdma.LocalWrite|rdma.RemoteRead|rdma.RemoteWrite, testTimeout, false))(t)
	t.Cleanup(func() {
		if err := errors.Join(e.close(), m.close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	c := &badClient{endpoint: e, t: t}
	c.buf = must(e.register(4096, rdma.LocalWrite|rdma.RemoteRead|rdma.RemoteWrite))(t)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	must(e.qp.Connect(ctx, r.ln.Addr(), p))(t)
	return c
}

// advert names n bytes of the client's memory.
func (c *badClient) advert(n uint32) Advert {
	return Advert{Addr: c.buf.buf.Addr(), RKey: c.buf.region.RKey(), Size: n}
}

// sendRaw sends n bytes of the client's memory as one message.
func (c *badClient) sendRaw(n uint32) {
	c.t.Helper()
	wr := rdma.SendWR{ID: idSend, Op: rdma.OpSend, NumSGE: 1}
	wr.SGE[0] = rdma.SGE{Addr: c.buf.buf.Addr(), Len: n, LKey: c.buf.region.LKey()}
	check(c.t, c.post(wr, &c.sending, true))
}

func (c *badClient) sendAdvert(a Advert) {
	c.t.Helper()
	check(c.t, c.send(context.Background(), a))
}

func (c *badClient) goAhead() {
	c.t.Helper()
	must(c.recv(context.Background(), "go-ahead"))(c.t)
}

// hangUp ends the connection in order.
func (c *badClient) hangUp() {
	c.t.Helper()
	check(c.t, c.disconnect(context.Background()))
}
