package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/drive"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine/enginetest"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/latency"
	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/workload/throughput"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// dialled is a connection to a server for at most ten seconds of the test's life.
func dialled(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	return conn
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func talk(t *testing.T, addr string, raw string) *engine.Message {
	t.Helper()
	conn := dialled(t, addr)
	defer conn.Close()
	go io.WriteString(conn, raw)
	var last *engine.Message
	r := bufio.NewReader(conn)
	for {
		line, err := engine.ReadLine(r, engine.MaxLine)
		if err != nil {
			return last
		}
		if last, err = engine.ParseMessage(line); err != nil {
			t.Fatalf("the server said %q: %v", line, err)
		}
	}
}

var greeting = fmt.Sprintf(`{"magic":"rdmaperf-control","version":%d,`, engine.ControlVersion)

func hello(t testing.TB, magic string, version int) string {
	t.Helper()
	b, err := json.Marshal(&engine.Message{Magic: magic, Version: version, Type: engine.MsgHello})
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func planLine(t testing.TB, edit func(*engine.Message)) string {
	t.Helper()
	p := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
	m := &engine.Message{Magic: engine.ControlMagic, Version: engine.ControlVersion, Type: engine.MsgPlan, Plan: &p,
		Caps: &transports.Caps{Kinds: ^transports.KindSet(0), MaxMsg: 1 << 30, LastByteLast: true}}
	if edit != nil {
		edit(m)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return hello(t, m.Magic, m.Version) + string(b) + "\n"
}

// badOpenings are first lines, each with what the answer must be: the exit code and a part of the message.
func badOpenings(t testing.TB) map[string]struct {
	line, want string
	code       int
} {
	type c = struct {
		line, want string
		code       int
	}
	return map[string]c{
		"another protocol": {"GET / HTTP/1.1\r\n\r\n", "not the rdmaperf control protocol", 5},
		"a TLS handshake":  {"\x16\x03\x01\x02\x00\x01\n", "the client speaks TLS, this server does not", 5},
		"not an object":    {"[1,2]\n", "not the rdmaperf control protocol", 5},
		"no magic":         {planLine(t, func(m *engine.Message) { m.Magic = "" }), "not the rdmaperf control protocol", 5},
		"another magic": {planLine(t, func(m *engine.Message) { m.Magic = "iperf" }),
			"not the rdmaperf control protocol", 5},
		"another version": {planLine(t, func(m *engine.Message) { m.Version = 99 }), "version 99", 5},
		"a wrong type": {hello(t, engine.ControlMagic, engine.ControlVersion) + greeting +
			`"type":"plan","plan":{"qps":"many"}}` + "\n", "not the rdmaperf control protocol", 5},
		"no plan":       {planLine(t, func(m *engine.Message) { m.Plan = nil }), "no plan", 5},
		"out of turn":   {planLine(t, func(m *engine.Message) { m.Type = engine.MsgEnd }), `got "end"`, 5},
		"no points":     {planLine(t, func(m *engine.Message) { m.Plan.Points = nil }), "points", 2},
		"absurd qps":    {planLine(t, func(m *engine.Message) { m.Plan.QPs = 1 << 30 }), "--qp", 2},
		"negative size": {planLine(t, func(m *engine.Message) { m.Plan.Points[0].Size = -1 }), "sizes are", 2},
		"no end":        {planLine(t, func(m *engine.Message) { m.Plan.Iterations = 0 }), "iterations", 2},
		"missing operation": {planLine(t, func(m *engine.Message) {
			pt := &m.Plan.Points[0]
			pt.Op, pt.Call, pt.Response = "call", engine.CallUnary, pt.Size
		}), "call", 77},
		"no kind of call":    {planLine(t, func(m *engine.Message) { m.Plan.Points[0].Op = "call" }), "kind of call", 2},
		"a line without end": {strings.Repeat("x", engine.MaxLine+8192), "longer than 4096", 5},
		"a long greeting": {strings.TrimSuffix(hello(t, engine.ControlMagic, engine.ControlVersion), "}\n") +
			`,"data":"` + strings.Repeat("x", 4096) + "\"}\n", "longer than 4096", 5},
		"no greeting": {planLine(t, nil)[len(hello(t, engine.ControlMagic, engine.ControlVersion)):], `got "plan"`, 5},
	}
}

func TestServerAnswersBadClientsAndGoesOn(t *testing.T) {
	addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table})
	for name, c := range badOpenings(t) {
		t.Run(name, func(t *testing.T) {
			m := talk(t, addr, c.line)
			if m == nil || m.Type != engine.MsgError || m.Error.Code != c.code ||
				!strings.Contains(m.Error.Message, c.want) {
				t.Errorf("answer %+v %+v, want an error %d with %q", m, m.Error, c.code, c.want)
			}
			enginetest.Works(t, addr, tr)
		})
	}
}

// A client that dies at any step costs nobody anything.
func TestServerSurvivesClientsThatDie(t *testing.T) {
	addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table})
	pt := engine.Point{Workload: latency.Name, Op: "send", Size: 64}
	line := func(m *engine.Message) string {
		b, _ := json.Marshal(m)
		return string(b) + "\n"
	}
	for name, lines := range map[string]string{
		"at once":             "",
		"after the plan":      planLine(t, nil),
		"before its sessions": planLine(t, nil) + line(&engine.Message{Type: engine.MsgPoint, Point: &pt}),
		"inside a line":       planLine(t, nil) + `{"type":"poi`,
	} {
		t.Run(name, func(t *testing.T) {
			conn := dialled(t, addr)
			io.WriteString(conn, lines)
			conn.Close()
			enginetest.Works(t, addr, tr)
		})
	}
	t.Run("in the middle of a phase", func(t *testing.T) {
		plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
		plan.Iterations, plan.Duration = 0, time.Minute
		posted := make(chan struct{})
		var once sync.Once
		f := &enginetest.Fault{Transport: tr.(transports.Transport)}
		f.Post = func(s transports.Session, ops []transports.Op) (int, error) {
			if ops[0].Kind == transports.KindSend {
				once.Do(func() { close(posted) })
			}
			return s.Post(ops)
		}
		c, err := engine.Connect(t.Context(), addr, f, plan)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := enginetest.First(c.Run(context.Background(), 0))
			ended <- err
		}()
		<-posted
		c.Ctl.Conn.Close() // as if the process had been killed
		if err := <-ended; reports.Code(err) != reports.ExitPeer {
			t.Errorf("error %v, want exit 5", err)
		}
		c.Close()
		enginetest.Works(t, addr, tr)
	})
}

type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}

// A client that leaves in the middle of a set-up is not the server's end.
func TestServerSaysThatTheClientLeft(t *testing.T) {
	lines := make(lineWriter, 16)
	addr, _ := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table,
		Log: slog.New(slog.NewTextHandler(lines, nil))})
	pt := engine.Point{Workload: latency.Name, Op: "send", Size: 64}
	conn := dialled(t, addr)
	b, _ := json.Marshal(&engine.Message{Type: engine.MsgPoint, Point: &pt})
	io.WriteString(conn, planLine(t, nil)+string(b)+"\n")
	answers := bufio.NewScanner(conn)
	for _, what := range []string{"plan", "point"} { // behind the second it waits for sessions
		if !answers.Scan() {
			t.Fatalf("no answer to the %s: %v", what, answers.Err())
		}
	}
	conn.Close()
	for end := time.After(5 * time.Second); ; {
		select {
		case line := <-lines:
			if strings.Contains(line, "shutting down") {
				t.Fatalf("log: %s", line)
			}
			if strings.Contains(line, "the client closed the connection") {
				return
			}
		case <-end:
			t.Fatal("nothing in the log")
		}
	}
}

func TestServerServesSeveralAtOnceUpToItsLimit(t *testing.T) {
	addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table, MaxClients: 2})
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64},
		engine.Point{Workload: latency.Name, Op: "read", Size: 64})
	var clients []*engine.Client
	for range 2 {
		c, err := engine.Connect(t.Context(), addr, tr, plan)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
	}
	if _, err := engine.Connect(t.Context(), addr, tr, plan); reports.Code(err) != reports.ExitPeer ||
		!strings.Contains(err.Error(), "busy") {
		t.Errorf("a third client: %v, want a busy answer and exit 5", err)
	}
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Go(func() {
			for i := range plan.Points {
				if r, err := enginetest.First(c.Run(t.Context(), i)); err != nil || r.Operations != 300 {
					t.Errorf("side by side: %d operations, %v", r.Operations, err)
				}
			}
		})
	}
	wg.Wait()
	clients[0].Close()
	for deadline := time.Now().Add(20 * time.Second); ; {
		c, err := engine.Connect(t.Context(), addr, tr, plan)
		if err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("no place became free: %v", err)
		}
	}
}

// fakeServer answers the first line with raw bytes, then waits for the end.
func fakeServer(t *testing.T, answer string) string {
	t.Helper()
	l := listen(t)
	var wg sync.WaitGroup
	wg.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		bufio.NewReader(conn).ReadString('\n')
		io.WriteString(conn, answer)
		if answer != "" {
			return
		}
		io.Copy(io.Discard, conn) // silent until the client gives up
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

func TestClientRefusesStrangeServers(t *testing.T) {
	_, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table})
	for name, c := range map[string]struct {
		answer, want string
		code         int
	}{
		"silent":           {"", "no answer", 5},
		"another protocol": {"HTTP/1.1 400 Bad Request\r\n\r\n", "not the rdmaperf control protocol", 5},
		"another version":  {`{"magic":"rdmaperf-control","version":99,"type":"accept"}` + "\n", "version 99", 5},
		"no accept":        {greeting + `"type":"ended"}` + "\n", `got "ended"`, 5},
		"a refusal":        {why, "no device", 77},
		"an unknown code": {greeting + `"type":"error","error":{"code":0,"operation":"x","message":"y"}}` + "\n", "y",
			1},
		"cut short": {`{"magic":"rdmaperf-control"`, "cut short", 5},
	} {
		t.Run(name, func(t *testing.T) {
			plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
			if c.answer == "" {
				plan.Timeout = time.Second
			}
			_, err := engine.Connect(t.Context(), fakeServer(t, c.answer), tr, plan)
			if reports.Code(err) != c.code || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("error %v (exit %d), want %q and exit %d", err, reports.Code(err), c.want, c.code)
			}
		})
	}
}

func TestConnectGivesUpInTime(t *testing.T) {
	_, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table})
	l := listen(t)
	addr := l.Addr().String()
	l.Close()
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
	plan.Timeout = time.Second
	begun := time.Now()
	if _, err := engine.Connect(t.Context(), addr, tr, plan); reports.Code(err) != reports.ExitPeer {
		t.Errorf("error %v, want exit 5", err)
	}
	if d := time.Since(begun); d < plan.Timeout/2 || d > 10*time.Second {
		t.Errorf("gave up after %v, want about %v: a server may be starting", d, plan.Timeout)
	}
}

// An interrupt gives what was measured so far, and the server goes on.
func TestInterruptGivesAPartialResult(t *testing.T) {
	addr, tr := enginetest.MemServer(t, &engine.Server{Workloads: enginetest.Table})
	for _, pt := range []engine.Point{{Workload: latency.Name, Op: "send", Size: 64},
		{Workload: throughput.Name, Op: "write", Size: 64}} {
		t.Run(pt.String(), func(t *testing.T) {
			plan := enginetest.QuickPlan(pt)
			plan.Iterations, plan.Duration = 0, time.Minute
			r, err := enginetest.CutShort(t, addr, tr, plan)
			if !errors.Is(err, engine.ErrInterrupted) || reports.Code(err) != reports.ExitInterrupted {
				t.Errorf("error %v, want interrupted and exit 130", err)
			}
			if r.Operations == 0 || r.DurationNs == 0 || r.Errors != 0 {
				t.Errorf("partial result %+v, want operations, a window and no error", r)
			}
			enginetest.Works(t, addr, tr)
		})
	}
}

// A server that goes away in mid-run costs one clear error and keeps the samples.
func TestServerThatDiesInMidRun(t *testing.T) {
	inner, server := enginetest.SessionEnds(t, enginetest.TcpEnds)
	l := listen(t)
	ctx, kill := context.WithCancel(context.Background())
	posts := 0
	client := &enginetest.Fault{Transport: inner, Post: func(s transports.Session, ops []transports.Op) (int, error) {
		if posts++; posts == 20_000 { // many are measured by then, however slow the machine is
			kill()
		}
		return s.Post(ops)
	}}
	var wg sync.WaitGroup
	wg.Go(func() { (&engine.Server{Workloads: enginetest.Table, Open: enginetest.OpenerOf(server)}).Serve(ctx, l) })
	plan := enginetest.QuickPlan(engine.Point{Workload: latency.Name, Op: "send", Size: 64})
	plan.Iterations, plan.Duration = 0, time.Minute
	r, err := enginetest.Try(t.Context(), l.Addr().String(), client, plan)
	wg.Wait()
	if reports.Code(err) != reports.ExitPeer {
		t.Errorf("error %v, want exit 5", err)
	}
	if r.Operations == 0 {
		t.Error("the samples before the loss are gone")
	}
}

// No line makes the parser panic, and what it accepts is bounded.
func FuzzControlLine(f *testing.F) {
	for _, c := range badOpenings(f) {
		f.Add([]byte(c.line))
	}
	f.Add([]byte(planLine(f, nil)))
	f.Add([]byte(`{"type":"point","point":{"workload":"throughput","op":"write","size_bytes":64}}`))
	f.Add([]byte(`{"type":"data","data":{"lanes":[{"first":1,"count":2}],"check":true}}`))
	f.Add([]byte(`{"type":"error","error":{"code":4,"corruption":{"Offset":3}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		line, err := engine.ReadLine(bufio.NewReader(bytes.NewReader(append(data, '\n'))), engine.MaxLine)
		if err != nil {
			return
		}
		m, err := engine.ParseMessage(line)
		if err != nil {
			return
		}
		if m.Plan != nil && m.Plan.Validate() == nil {
			p := m.Plan.WithDefaults()
			caps := transports.Caps{Kinds: 0xffff, Events: true, LastByteLast: true, MaxMsg: 1 << 32,
				MaxInline: 1 << 32, MaxDepth: 1 << 14}
			for _, pt := range p.Points[:min(len(p.Points), 4)] {
				if sh, err := engine.NewSetup(&p, pt, caps, caps).Shape(drive.ThroughputShape); err == nil {
					checkShape(t, sh)
				}
			}
		}
		if m.Error != nil {
			if reports.Code(m.Error.AsError("peer")) == reports.ExitOK {
				t.Error("a peer's error exits with 0")
			}
		}
	})
}

// checkShape holds the arithmetic that memory accesses rest on.
func checkShape(t *testing.T, sh *engine.Shape) {
	t.Helper()
	if w := sh.Window(); w <= 0 || w > 1<<36 {
		t.Fatalf("window of %d bytes: %+v", w, sh)
	}
	if end := sh.RxSlot(sh.Slots-1) + sh.Stride(); end > sh.CtlTx(0) || sh.CtlRx(engine.CtlSlots) > sh.Window() {
		t.Fatalf("regions overlap: %+v", sh)
	}
	if drive.CreditEvery(sh) > sh.RecvDepth || drive.Batch(sh) > sh.Depth || sh.TotalWindow() < int64(sh.Window()) {
		t.Fatalf("inconsistent: %+v", sh)
	}
}

// why is a server's last line.
var why = greeting + `"type":"error","error":{"code":77,"operation":"open transport","message":"no device"}}` + "\n"
