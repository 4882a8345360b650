package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// An exclusive server serves all connections of one run; another run is refused, or waits and learns for which run.
func TestExclusiveServerServesOneRunAtATime(t *testing.T) {
	addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table, Exclusive: true})
	connect := func(run string, noWait bool, log *slog.Logger) (*engine.Client, error) {
		plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
		plan.Run, plan.NoWait, plan.Log = run, noWait, log
		return engine.Connect(t.Context(), addr, tr, plan)
	}
	var first [2]*engine.Client
	for i := range first {
		var err error
		if first[i], err = connect("one", true, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := connect("two", true, nil); reports.Code(err) != reports.ExitPeer ||
		!strings.Contains(err.Error(), "127.0.0.1 has been measuring") {
		t.Errorf("with --no-wait: %v, want who measures", err)
	}
	log := make(lineWriter, 16)
	got := make(chan error, 1)
	go func() {
		c, err := connect("two", false, slog.New(slog.NewTextHandler(log, nil)))
		if err == nil {
			_, err = c.Run(t.Context(), 0)
			c.Close()
		}
		got <- err
	}()
	if line := <-log; !strings.Contains(line, "for=127.0.0.1") {
		t.Errorf("the one that waits logs %q", line)
	}
	first[0].Close()
	select {
	case err := <-got:
		t.Fatalf("served beside another run: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	first[1].Close()
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// What a server says before it closes arrives, also where the client's next line cannot be written any more.
func TestClientSeesWhyTheServerClosed(t *testing.T) {
	_, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table})
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
	t.Run("before the plan", func(t *testing.T) {
		here, there := net.Pipe()
		go func() {
			io.WriteString(there, why) // reads nothing: the plan cannot be written
			there.Close()
		}()
		c, err := engine.ConnectConn(t.Context(), here, tr, plan)
		if err == nil {
			c.Close()
		}
		sawWhy(t, err)
	})

	t.Run("before a point", func(t *testing.T) {
		here, there := net.Pipe()
		closed := make(chan struct{})
		go func() {
			defer close(closed)
			defer there.Close()
			caps, err := json.Marshal(tr.Caps())
			if err != nil {
				t.Error(err)
			}
			r := bufio.NewReader(there)
			r.ReadString('\n')
			io.WriteString(there, greeting+`"type":"welcome"}`+"\n")
			r.ReadString('\n')
			io.WriteString(there, greeting+`"type":"accept","accept":{"stack":"mem","caps":`+string(caps)+
				`,"max_window_bytes":1048576}}`+"\n")
			io.WriteString(there, why)
		}()
		c, err := engine.ConnectConn(t.Context(), here, tr, plan)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		<-closed
		_, err = c.Run(t.Context(), 0)
		sawWhy(t, err)
	})
}

func sawWhy(t *testing.T, err error) {
	t.Helper()
	if reports.Code(err) != reports.ExitNotRun || !strings.Contains(err.Error(), "no device") {
		t.Errorf("error %v (exit %d), want what the server said and exit 77", err, reports.Code(err))
	}
}

type panics struct{ engine.Runner }

func (panics) Server(context.Context, *engine.Serve) error { panic("injected") }

type bomb struct{ net.Conn }

func (bomb) Read([]byte) (int, error) { panic("injected") }

// A client whose point or octets make the server panic is cut off alone, and the next client is served.
func TestAPanicOfTheServerEndsOneClientAlone(t *testing.T) {
	s := &engine.Server{Workloads: engine.Table{}}
	for name, e := range enginetest.Table {
		s.Workloads[name] = e
	}
	e := s.Workloads[latency.Name]
	e.Runner = panics{e.Runner}
	s.Workloads[latency.Name] = e
	addr, tr := enginetest.MemServer(t, s)
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
	for range 2 {
		_, err := enginetest.Try(t.Context(), addr, tr, plan)
		if reports.Code(err) != reports.ExitFailed ||
			!strings.Contains(err.Error(), "internal error: injected, at peers_test.go:") {
			t.Errorf("%v, want the server's panic", err)
		}
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() { defer close(done); s.ServeConn(t.Context(), bomb{far}) }()
		near.SetDeadline(time.Now().Add(20 * time.Second))
		near.Read(make([]byte, 1000)) // a refusal or the end
		near.Close()
		<-done
	}
}

// moved listens on an address of its own, as a device does whose network is not the one of the control channel.
type moved struct {
	transports.Transport
	dialled []string
}

func (m *moved) Listen(ctx context.Context, addr string, cfg transports.Config) (transports.Listener, error) {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	return m.Transport.Listen(ctx, net.JoinHostPort("127.0.0.2", port), cfg)
}

func (m *moved) Dial(ctx context.Context, addr string, hello []byte, cfg transports.Config) (transports.Session,
	error) {
	m.dialled = append(m.dialled, addr)
	return m.Transport.Dial(ctx, addr, hello, cfg)
}

func TestSessionsGoWhereTheTransportListens(t *testing.T) {
	var client *moved
	_, err := enginetest.RunPoints(t, func(t testing.TB) (transports.Stack, transports.Stack) {
		c, s := enginetest.SessionEnds(t, enginetest.TcpEnds)
		client = &moved{Transport: c}
		return client, &moved{Transport: s}
	}, enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64}))
	if err != nil {
		t.Fatal(err)
	}
	if len(client.dialled) != 1 {
		t.Fatalf("dialled %v", client.dialled)
	}
	if host, _, err := net.SplitHostPort(client.dialled[0]); err != nil || host != "127.0.0.2" {
		t.Errorf("dialled %s, want the address of the server's device", client.dialled[0])
	}
}
