package grpcrdma

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
	"github.com/rdmaperf/rdmaperf/transports/verbs"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const testTimeout = 30 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// provider opens two devices that reach each other.
type provider struct {
	name string
	addr string // to listen at
	open func(t testing.TB) (a, b rdma.Device)

	unwatched bool // no ring of it can be watched
}

var providers = []provider{
	{name: "mem", addr: "b:0", open: func(t testing.TB) (rdma.Device, rdma.Device) {
		f := memdev.NewFabric(memdev.Config{})
		a, err := f.Open("a")
		must(t, err)
		b, err := f.Open("b")
		must(t, err)
		return a, b
	}},
	{name: "iwarp", addr: "127.0.0.1:0", open: func(t testing.TB) (rdma.Device, rdma.Device) {
		a, err := iwarp.Open(iwarp.Config{})
		must(t, err)
		b, err := iwarp.Open(iwarp.Config{})
		must(t, err)
		return a, b
	}},
}

// devicesVariable names RDMA devices, comma separated, on which the tests run
// beside the embedded ones: the lab's script sets it.
const devicesVariable = "RDMAPERF_VERBS_DEVICES"

func init() {
	for name := range strings.SplitSeq(os.Getenv(devicesVariable), ",") {
		if name != "" {
			providers = append(providers, verbsProvider(name))
		}
	}
}

// verbsProvider is a device of this machine that reaches itself.
func verbsProvider(name string) provider {
	cfg := verbs.Default()
	cfg.Device = name
	p := provider{name: "verbs:" + name, open: func(t testing.TB) (rdma.Device, rdma.Device) {
		a, err := verbs.Open(cfg)
		must(t, err)
		b, err := verbs.Open(cfg)
		must(t, err)
		return a, b
	}}
	// Where it cannot be opened, the tests say so.
	if dev, err := verbs.Open(cfg); err == nil {
		if near, ok := dev.(interface{ ListenHost() string }); ok {
			p.addr = net.JoinHostPort(near.ListenHost(), "0")
		}
		p.unwatched = !dev.Caps().Features.Has(rdma.FeatLastByteLast)
		dev.Close()
	}
	return p
}

// configs are the ways to wait and to notice arrival.
var configs = []Config{
	{},
	{Arrival: ArrivalNotice},
	{Polling: bpev.Config{Mode: bpev.BP}},
	{Polling: bpev.Config{Mode: bpev.Event}},
}

func configName(c Config) string { return fmt.Sprintf("%v,%v", c.Polling.Mode, c.Arrival) }

// onEach runs f on every provider.
func onEach(t *testing.T, f func(t *testing.T, p provider)) {
	for _, p := range providers {
		t.Run(p.name, func(t *testing.T) { f(t, p) })
	}
}

// everywhere runs f on every provider with every configuration.
func everywhere(t *testing.T, f func(t *testing.T, p provider, cfg Config)) {
	for _, p := range providers {
		for _, cfg := range configs {
			if p.name == "mem" && cfg.Polling.Mode == bpev.BP {
				continue // spins as bpev does, and shows nothing that iwarp does not
			}
			t.Run(p.name+"/"+configName(cfg), func(t *testing.T) { f(t, p, cfg) })
		}
	}
}

// pair is two Nets, the first of which dials.
type pair struct {
	t      testing.TB
	da, db rdma.Device
	a, b   *Net
	l      *Listener
}

func newPair(t testing.TB, p provider, ca, cb Config) *pair {
	t.Helper()
	e := &pair{t: t}
	e.da, e.db = p.open(t)
	quiet := slog.New(slog.DiscardHandler)
	if ca.Log == nil {
		ca.Log = quiet
	}
	if cb.Log == nil {
		cb.Log = quiet
	}
	var err error
	e.a, err = New(e.da, ca)
	must(t, err)
	e.b, err = New(e.db, cb)
	must(t, err)
	e.l, err = e.b.Listen(t.Context(), p.addr)
	must(t, err)
	t.Cleanup(e.close)
	return e
}

func (e *pair) close() {
	must(e.t, e.a.Close())
	must(e.t, e.b.Close())
	must(e.t, e.da.Close())
	must(e.t, e.db.Close())
}

// conn makes one connection: c1 dialled, c2 was accepted.
func (e *pair) conn() (c1, c2 *Conn) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	type accepted struct {
		c   net.Conn
		err error
	}
	got := make(chan accepted, 1)
	go func() {
		c, err := e.l.Accept()
		got <- accepted{c, err}
	}()
	c, err := e.a.DialContext(ctx, e.l.Addr().String())
	must(e.t, err)
	g := <-got
	must(e.t, g.err)
	return c.(*Conn), g.c.(*Conn)
}

var pattern = rpctest.Pattern

func readFull(t testing.TB, c net.Conn, n int) []byte {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(testTimeout)))
	b := make([]byte, n)
	_, err := io.ReadFull(c, b)
	must(t, err)
	return b
}
