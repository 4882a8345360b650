package engine_test

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

func guarded(t *testing.T, s *engine.Server) (addr string, connect func(token string) error) {
	t.Helper()
	addr, tr := enginetest.MemServer(t, s)
	return addr, func(token string) error {
		plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
		plan.Timeout, plan.Token = 5*time.Second, []byte(token)
		_, err := enginetest.Try(t.Context(), addr, tr, plan)
		return err
	}
}

func TestStrangersWithoutTheTokenLearnNothing(t *testing.T) {
	addr, connect := guarded(t, &engine.Server{Workloads: enginetest.Table, Token: []byte("open sesame"),
		Environment: func() reports.Environment { return reports.Environment{Hostname: "secret7"} }})
	if err := connect("open sesame"); err != nil {
		t.Errorf("with the token: %v", err)
	}
	for _, token := range []string{"", "open sesam", "open sesame!"} {
		if err := connect(token); reports.Code(err) != reports.ExitPeer || !strings.Contains(err.Error(), "token") ||
			strings.Contains(err.Error(), "sesame") {
			t.Errorf("token %q: %v, want a refusal without it", token, err)
		}
	}
	conn := dialled(t, addr)
	io.WriteString(conn, planLine(t, nil)+`{"type":"proof","proof":"AAAA"}`+"\n")
	said, _ := io.ReadAll(conn)
	if strings.Contains(string(said), "secret7") ||
		!strings.Contains(string(said), "the token differs from the server's") {
		t.Errorf("an unknown client got %q", said)
	}
}

// Before the token is shown, a line is short; behind it, a plan has no more points than it may have.
func TestUnknownClientsTakeLittleMemory(t *testing.T) {
	points := strings.Repeat("{},", 699_000) + "{}"
	long := strings.Replace(planLine(t, nil), `"points":[`, `"points":[`+points+",", 1)
	hello, rest, _ := strings.Cut(long, "\n")
	plan := []byte(rest)
	for _, token := range []string{"open sesame", ""} {
		addr, _ := guarded(t, &engine.Server{Workloads: enginetest.Table, Token: []byte(token)})
		before := allocated()
		for range 4 {
			conn := dialled(t, addr)
			r := bufio.NewReader(conn)
			io.WriteString(conn, hello+"\n")
			r.ReadString('\n')
			conn.Write(plan)
			said, _ := r.ReadString('\n')
			conn.Close()
			if !strings.Contains(said, `"error"`) && token == "" {
				t.Errorf("a plan of 699,000 points is answered %q", said)
			}
		}
		most := uint64(1 << 20)
		if token == "" {
			most = 80 << 20 // lines of 2 MiB, and 4,096 points of each
		}
		if got := allocated() - before; got > most {
			t.Errorf("token %q: four connections allocated %d MiB", token, got>>20)
		}
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

// Data connections need the token, too: the number on the control channel is not enough.
func TestDataConnectionsNeedTheToken(t *testing.T) {
	number := []byte("12345678")
	if string(engine.SessionToken(nil, number)) != string(number) {
		t.Error("without a token the number changes")
	}
	got := engine.SessionToken([]byte("x"), number)
	if len(got) != engine.TokenLen || string(got) == string(number) ||
		string(got) == string(engine.SessionToken([]byte("y"), number)) {
		t.Errorf("%x does not depend on the token", got)
	}
}

func TestOnlyAllowedAddressesAreServed(t *testing.T) {
	_, connect := guarded(t, &engine.Server{Workloads: enginetest.Table,
		Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}})
	if err := connect(""); reports.Code(err) != reports.ExitPeer {
		t.Errorf("from another network: %v", err)
	}
	_, connect = guarded(t, &engine.Server{Workloads: enginetest.Table,
		Allow: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("127.0.0.0/8")}})
	if err := connect(""); err != nil {
		t.Errorf("from an allowed network: %v", err)
	}
}

// Connections that say nothing give way: a good client is served beside twice as many as there are places for.
func TestSilentConnectionsGiveWay(t *testing.T) {
	addr, connect := guarded(t, &engine.Server{Workloads: enginetest.Table})
	for range 2 * engine.MaxRefusals {
		dialled(t, addr)
	}
	begun := time.Now()
	if err := connect(""); err != nil || time.Since(begun) > engine.FirstLineWait {
		t.Errorf("a good client: %v after %v", err, time.Since(begun))
	}
}

// With all places taken by silent clients of one address another gets one, and the same after long silence.
func TestIdleClientsGiveWay(t *testing.T) {
	s := &engine.Server{MaxClients: 2}
	take := func(addr string, idle time.Duration) (*engine.Visitor, error) {
		near, _ := net.Pipe()
		v := s.Enter(near)
		v.Addr = netip.MustParseAddr(addr)
		err := s.Admit(v)
		v.Idle = time.Now().Add(-idle)
		return v, err
	}
	if _, err := take("192.0.2.1", time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := take("192.0.2.1", 2*time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := take("192.0.2.1", 0); err == nil || !strings.Contains(err.Error(), "try again in") {
		t.Errorf("a third of the same address: %v, want busy", err)
	}
	if _, err := take("192.0.2.2", time.Second); err != nil {
		t.Errorf("another address: %v", err)
	}
	if _, err := take("192.0.2.3", 0); err == nil {
		t.Error("a third address throws out one of two that have one place each")
	}
	for v := range s.Guard.Visitors {
		if v.Accepted {
			v.Idle = time.Now().Add(-2 * engine.IdleGrace)
		}
	}
	if _, err := take("192.0.2.3", 0); err != nil {
		t.Errorf("after long silence: %v", err)
	}
}

// Queues and threads count, not windows alone, and all clients share one budget.
func TestABudgetBoundsWhatPointsHold(t *testing.T) {
	s := &engine.Server{MaxMemory: 16 << 20}
	_, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table})
	hold := func(qps, depth, recvDepth int) (*engine.Serve, error) {
		c := &engine.ServedClient{Server: s, Ctl: new(engine.Control), Tr: tr}
		c.Plan = engine.Plan{QPs: qps, Depth: depth, RecvDepth: recvDepth, Polling: engine.PollingBusy}
		serve := c.NewServe(engine.Point{Op: "write", Size: 1}, time.Second)
		sh, err := engine.NewSetup(&c.Plan, serve.Point, tr.Caps(), tr.Caps()).Shape(drive.ThroughputShape)
		if err != nil {
			t.Fatal(err)
		}
		return serve, serve.HoldShape(sh, 0)
	}
	if _, err := hold(256, 8000, 8000); reports.Code(err) != reports.ExitUsage ||
		!strings.Contains(err.Error(), "queues") || !strings.Contains(err.Error(), "--max-memory") {
		t.Errorf("256 QPs of depth 8000: %v", err)
	}
	one, err := hold(8, 8000, 100)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hold(8, 8000, 100); err == nil {
		t.Error("two of them fit")
	}
	one.Release()
	if one, err = hold(8, 8000, 100); err != nil {
		t.Errorf("what was given back is not there: %v", err)
	} else {
		one.Release()
	}
	if s.Guard.Memory != 0 || s.Guard.Threads != 0 {
		t.Errorf("%d bytes and %d threads are still held", s.Guard.Memory, s.Guard.Threads)
	}
}

func TestErrorsOfStrangersAreShort(t *testing.T) {
	log := make(lineWriter, 16)
	addr := enginetest.ServeOn(t, &engine.Server{Workloads: enginetest.Table,
		Log:  slog.New(slog.NewTextHandler(log, nil)),
		Open: func(spec string) (transports.Stack, error) { return nil, fmt.Errorf("no stack %q", spec) }})
	conn := dialled(t, addr)
	hello, plan, _ := strings.Cut(planLine(t, func(m *engine.Message) {
		m.Plan.Transport = strings.Repeat("x", 900_000)
	}), "\n")
	r := bufio.NewReader(io.LimitReader(conn, 5*engine.LongestSay))
	io.WriteString(conn, hello+"\n")
	r.ReadString('\n')
	io.WriteString(conn, plan)
	// It answers by one line; the end of the connection would be a wait for our own deadline.
	said, _ := r.ReadString('\n')
	if !strings.Contains(said, "no stack") || len(said) > 4*engine.LongestSay {
		t.Errorf("%d bytes come back, want a short reason", len(said))
	}
	if line := <-log; len(line) > 4*engine.LongestSay {
		t.Errorf("%d bytes of log, want a short line", len(line))
	}
}

type holder struct {
	needs  engine.Memory
	served *bool
}

func (holder) Client(context.Context, *engine.Run) error { return nil }

func (h holder) Server(_ context.Context, s *engine.Serve) error {
	err := s.Hold(h.needs)
	*h.served = err == nil
	return cmp.Or(err, io.EOF)
}

// A workload with a run of its own is held against the budget like any other.
func TestTheBudgetBoundsRunsOfTheirOwn(t *testing.T) {
	serve := func(needs engine.Memory) string {
		served := false
		table := engine.Table{"own": {Runner: holder{needs, &served}}}
		s := &engine.Server{Workloads: table, MaxMemory: 1 << 20, MaxThreads: 2}
		addr, _ := enginetest.MemServer(t, s)
		conn := dialled(t, addr)
		pt := engine.Point{Workload: "own", Size: 64}
		io.WriteString(conn, planLine(t, func(m *engine.Message) {
			m.Plan.Points = []engine.Point{pt}
		})+`{"type":"point","point":{"workload":"own","op":"","size_bytes":64}}`+"\n"+`{"type":"end"}`+"\n")
		conn.(*net.TCPConn).CloseWrite()
		said, _ := io.ReadAll(conn)
		if refused := strings.Contains(string(said), "--max-"); refused == served {
			t.Errorf("needs %+v: served %v and said %q", needs, served, said)
		}
		return string(said)
	}
	serve(engine.Memory{Windows: 64, Threads: 1})
	if said := serve(engine.Memory{Windows: 2 << 20, Threads: 1}); !strings.Contains(said, "2359296 bytes") ||
		!strings.Contains(said, "--max-memory") {
		t.Errorf("too much memory: %q", said)
	}
	if said := serve(engine.Memory{Threads: 3}); !strings.Contains(said, "3 threads") ||
		!strings.Contains(said, "--max-threads") {
		t.Errorf("too many threads: %q", said)
	}
}

// No source has all places: not while it measures, by silence in a point, or by many addresses of an IPv6 network.
func TestNoSourceHoldsAllPlaces(t *testing.T) {
	fill := func(idle time.Time, addrs ...string) *engine.Server {
		s := &engine.Server{MaxClients: len(addrs)}
		for _, a := range addrs {
			near, _ := net.Pipe()
			v := s.Enter(near)
			v.Addr = netip.MustParseAddr(a)
			if err := s.Admit(v); err != nil {
				t.Fatal(err)
			}
			v.Idle = idle
		}
		return s
	}
	measuring, silent := time.Now().Add(time.Hour), time.Now().Add(-2*engine.IdleGrace)
	for _, c := range []struct {
		name     string
		s        *engine.Server
		newcomer string
		want     bool
	}{
		{"all places of one address that measures", fill(measuring, "192.0.2.1", "192.0.2.1"), "192.0.2.2", true},
		{"the same address once more", fill(measuring, "192.0.2.1", "192.0.2.1"), "192.0.2.1", false},
		{"two addresses that measure", fill(measuring, "192.0.2.1", "192.0.2.3"), "192.0.2.2", false},
		{"two addresses beyond what their points said", fill(silent, "192.0.2.1", "192.0.2.3"), "192.0.2.2", true},
		{"one IPv6 network", fill(measuring, "2001:db8::1", "2001:db8::2"), "2001:db8:0:1::1", true},
		{"one IPv6 network once more", fill(measuring, "2001:db8::1", "2001:db8::2"), "2001:db8::3", false},
	} {
		near, _ := net.Pipe()
		v := c.s.Enter(near)
		v.Addr = netip.MustParseAddr(c.newcomer)
		if err := c.s.Admit(v); (err == nil) != c.want {
			t.Errorf("%s: %s got %v", c.name, c.newcomer, err)
		}
		if n := c.s.Clients(); n != c.s.MaxClients {
			t.Errorf("%s: %d clients", c.name, n)
		}
	}
}

// A server that is open to everybody shows its machine to nobody elsewhere.
func TestOpenServersDoNotTellTheirMachine(t *testing.T) {
	for _, allow := range [][]netip.Prefix{nil, {netip.MustParsePrefix("192.0.2.0/24")}} {
		s := &engine.Server{Workloads: enginetest.Table, Allow: allow, Environment: func() reports.Environment {
			return reports.Environment{Hostname: "secret7"}
		}}
		enginetest.MemServer(t, s)
		near, far := net.Pipe() // an address that is not of this machine
		done := make(chan struct{})
		go func() { defer close(done); s.ServeConn(t.Context(), far) }()
		near.SetDeadline(time.Now().Add(10 * time.Second))
		go io.WriteString(near, planLine(t, nil)) // a pipe: the server answers in between
		r := bufio.NewReader(near)
		r.ReadString('\n') // welcome
		said, err := r.ReadString('\n')
		near.Close()
		<-done
		if err != nil || !strings.Contains(said, `"accept"`) {
			t.Fatalf("%q, %v", said, err)
		}
		if shown := strings.Contains(said, "secret7"); shown != (allow != nil) {
			t.Errorf("allow %v: shown %v", allow, shown)
		}
	}
}
