package bench

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

	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
)

// memServer runs a server on mem and returns its address and the client's end.
func memServer(t testing.TB, s *Server) (string, transports.Transport) {
	t.Helper()
	client, server := memEnds(t)
	s.Open = openerOf(server)
	return serveOn(t, s), client
}

// works fails t when a client cannot run a point now.
func works(t testing.TB, addr string, tr transports.Transport) {
	t.Helper()
	plan := quickPlan(Point{Workload: WorkloadLatency, Op: "send", Size: 64})
	plan.Iterations = 10
	c, err := Connect(t.Context(), addr, tr, plan)
	if err != nil {
		t.Fatalf("a good client: %v", err)
	}
	defer c.Close()
	if _, err := c.Run(t.Context(), 0); err != nil {
		t.Fatalf("a good client: %v", err)
	}
}

// cutShort runs the first point of plan until it is interrupted, once it has
// measured something: a busy machine takes long to begin.
func cutShort(t testing.TB, addr string, tr transports.Transport, plan Plan) (r reports.Result, err error) {
	t.Helper()
	for after := 100 * time.Millisecond; after < 20*time.Second && r.Operations == 0; after *= 5 {
		c, dialed := Connect(t.Context(), addr, tr, plan)
		if dialed != nil {
			t.Fatal(dialed)
		}
		ctx, cancel := context.WithTimeout(t.Context(), after)
		r, err = c.Run(ctx, 0)
		cancel()
		c.Close()
	}
	return r, err
}

// talk sends raw lines and returns the server's last line.
func talk(t *testing.T, addr string, raw string) *message {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	go io.WriteString(conn, raw)
	var last *message
	r := bufio.NewReader(conn)
	for {
		line, err := readLine(r)
		if err != nil {
			return last
		}
		if last, err = parseMessage(line); err != nil {
			t.Fatalf("the server said %q: %v", line, err)
		}
	}
}

func planLine(t testing.TB, edit func(*message)) string {
	t.Helper()
	p := quickPlan(Point{Workload: WorkloadLatency, Op: "send", Size: 64})
	m := &message{Magic: controlMagic, Version: ControlVersion, Type: msgPlan, Plan: &p}
	if edit != nil {
		edit(m)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

// badOpenings are first lines, each with what the answer must be: the exit code
// and a part of the message.
func badOpenings(t testing.TB) map[string]struct {
	line, want string
	code       int
} {
	type c = struct {
		line, want string
		code       int
	}
	return map[string]c{
		"another protocol":   {"GET / HTTP/1.1\r\n\r\n", "not the rdmaperf control protocol", 5},
		"not an object":      {"[1,2]\n", "not the rdmaperf control protocol", 5},
		"no magic":           {planLine(t, func(m *message) { m.Magic = "" }), "not the rdmaperf control protocol", 5},
		"another magic":      {planLine(t, func(m *message) { m.Magic = "iperf" }), "not the rdmaperf control protocol", 5},
		"another version":    {planLine(t, func(m *message) { m.Version = 99 }), "version 99", 5},
		"a wrong type":       {`{"magic":"rdmaperf-control","version":2,"type":"plan","plan":{"qps":"many"}}` + "\n", "not the rdmaperf control protocol", 5},
		"no plan":            {planLine(t, func(m *message) { m.Plan = nil }), `got "plan"`, 5},
		"out of turn":        {planLine(t, func(m *message) { m.Type = msgStop }), `got "stop"`, 5},
		"no points":          {planLine(t, func(m *message) { m.Plan.Points = nil }), "points", 2},
		"absurd qps":         {planLine(t, func(m *message) { m.Plan.QPs = 1 << 30 }), "qps", 2},
		"negative size":      {planLine(t, func(m *message) { m.Plan.Points[0].Size = -1 }), "sizes are", 2},
		"no end":             {planLine(t, func(m *message) { m.Plan.Iterations = 0 }), "iterations", 2},
		"missing operation":  {planLine(t, func(m *message) { m.Plan.Points[0].Op = "call" }), "call", 77},
		"a line without end": {strings.Repeat("x", maxLine+8192), "longer than", 5},
	}
}

func TestServerAnswersBadClientsAndGoesOn(t *testing.T) {
	addr, tr := memServer(t, &Server{})
	for name, c := range badOpenings(t) {
		t.Run(name, func(t *testing.T) {
			m := talk(t, addr, c.line)
			if m == nil || m.Type != msgError || m.Error.Code != c.code || !strings.Contains(m.Error.Message, c.want) {
				t.Errorf("answer %+v, want an error %d with %q", m, c.code, c.want)
			}
			works(t, addr, tr)
		})
	}
}

// A client that dies at any step costs nobody anything.
func TestServerSurvivesClientsThatDie(t *testing.T) {
	addr, tr := memServer(t, &Server{})
	sh, err := newShape(&Plan{QPs: 1, Threads: 1, Polling: PollingBusy, Timeout: time.Second}, Point{Workload: WorkloadLatency, Op: "send", Size: 64}, tr.Caps(), tr.Caps())
	if err != nil {
		t.Fatal(err)
	}
	line := func(m *message) string {
		b, _ := json.Marshal(m)
		return string(b) + "\n"
	}
	for name, lines := range map[string]string{
		"at once":             "",
		"after the plan":      planLine(t, nil),
		"before its sessions": planLine(t, nil) + line(&message{Type: msgPoint, Shape: sh}),
		"inside a line":       planLine(t, nil) + `{"type":"poi`,
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			io.WriteString(conn, lines)
			conn.Close()
			works(t, addr, tr)
		})
	}
	t.Run("in the middle of a phase", func(t *testing.T) {
		plan := quickPlan(Point{Workload: WorkloadLatency, Op: "send", Size: 64})
		plan.Iterations, plan.Duration = 0, time.Minute
		c, err := Connect(t.Context(), addr, tr, plan)
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := c.Run(context.Background(), 0)
			ended <- err
		}()
		time.Sleep(50 * time.Millisecond)
		c.ctl.conn.Close() // as if the process had been killed
		if err := <-ended; reports.Code(err) != reports.ExitPeer {
			t.Errorf("error %v, want exit 5", err)
		}
		c.Close()
		works(t, addr, tr)
	})
}

// lineWriter hands over what a logger writes.
type lineWriter chan string

func (w lineWriter) Write(b []byte) (int, error) {
	w <- string(b)
	return len(b), nil
}

// A client that leaves in the middle of a set-up is not the server's end.
func TestServerSaysThatTheClientLeft(t *testing.T) {
	lines := make(lineWriter, 16)
	addr, tr := memServer(t, &Server{Log: slog.New(slog.NewTextHandler(lines, nil))})
	sh, err := newShape(&Plan{QPs: 1, Threads: 1, Polling: PollingBusy, Timeout: 5 * time.Second}, Point{Workload: WorkloadLatency, Op: "send", Size: 64}, tr.Caps(), tr.Caps())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(&message{Type: msgPoint, Shape: sh})
	io.WriteString(conn, planLine(t, nil)+string(b)+"\n")
	conn.SetReadDeadline(time.Now().Add(5 * time.Second))
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
			if strings.Contains(line, "the client left") {
				return
			}
		case <-end:
			t.Fatal("nothing in the log")
		}
	}
}

func TestServerServesSeveralAtOnceUpToItsLimit(t *testing.T) {
	addr, tr := memServer(t, &Server{MaxClients: 2})
	plan := quickPlan(Point{Workload: WorkloadLatency, Op: "send", Size: 64}, Point{Workload: WorkloadLatency, Op: "read", Size: 64})
	var clients []*Client
	for range 2 {
		c, err := Connect(t.Context(), addr, tr, plan)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
	}
	if _, err := Connect(t.Context(), addr, tr, plan); reports.Code(err) != reports.ExitPeer || !strings.Contains(err.Error(), "busy") {
		t.Errorf("a third client: %v, want a busy answer and exit 5", err)
	}
	var wg sync.WaitGroup
	for _, c := range clients {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range plan.Points {
				if r, err := c.Run(t.Context(), i); err != nil || r.Operations != 300 {
					t.Errorf("side by side: %d operations, %v", r.Operations, err)
				}
			}
		}()
	}
	wg.Wait()
	clients[0].Close()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := Connect(t.Context(), addr, tr, plan)
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
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
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
	}()
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}

func TestClientRefusesStrangeServers(t *testing.T) {
	_, tr := memServer(t, &Server{})
	for name, c := range map[string]struct {
		answer, want string
		code         int
	}{
		"silent":           {"", "no answer", 5},
		"another protocol": {"HTTP/1.1 400 Bad Request\r\n\r\n", "not the rdmaperf control protocol", 5},
		"another version":  {`{"magic":"rdmaperf-control","version":7,"type":"accept"}` + "\n", "version 7", 5},
		"no accept":        {`{"magic":"rdmaperf-control","version":2,"type":"ended"}` + "\n", `got "ended"`, 5},
		"a refusal":        {`{"magic":"rdmaperf-control","version":2,"type":"error","error":{"code":77,"operation":"open transport","message":"no device"}}` + "\n", "no device", 77},
		"a strange code":   {`{"magic":"rdmaperf-control","version":2,"type":"error","error":{"code":0,"operation":"x","message":"y"}}` + "\n", "y", 1},
		"cut short":        {`{"magic":"rdmaperf-control"`, "cut short", 5},
	} {
		t.Run(name, func(t *testing.T) {
			plan := quickPlan(Point{Workload: WorkloadLatency, Op: "send", Size: 64})
			if c.answer == "" {
				plan.Timeout = time.Second
			}
			_, err := Connect(t.Context(), fakeServer(t, c.answer), tr, plan)
			if reports.Code(err) != c.code || !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("error %v (exit %d), want %q and exit %d", err, reports.Code(err), c.want, c.code)
			}
		})
	}
}

func TestConnectGivesUpInTime(t *testing.T) {
	_, tr := memServer(t, &Server{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	plan := quickPlan(Point{Workload: WorkloadLatency, Op: "send", Size: 64})
	plan.Timeout = time.Second
	begun := time.Now()
	if _, err := Connect(t.Context(), addr, tr, plan); reports.Code(err) != reports.ExitPeer {
		t.Errorf("error %v, want exit 5", err)
	}
	if d := time.Since(begun); d < plan.Timeout/2 || d > 10*time.Second {
		t.Errorf("gave up after %v, want about %v: a server may be starting", d, plan.Timeout)
	}
}

// An interrupt gives what was measured so far, and the server goes on.
func TestInterruptGivesAPartialResult(t *testing.T) {
	addr, tr := memServer(t, &Server{})
	for _, pt := range []Point{{Workload: WorkloadLatency, Op: "send", Size: 64}, {Workload: WorkloadThroughput, Op: "write", Size: 64}} {
		t.Run(pt.String(), func(t *testing.T) {
			plan := quickPlan(pt)
			plan.Iterations, plan.Duration = 0, time.Minute
			r, err := cutShort(t, addr, tr, plan)
			if !errors.Is(err, ErrInterrupted) || reports.Code(err) != reports.ExitFailed {
				t.Errorf("error %v, want interrupted and exit 1", err)
			}
			if r.Operations == 0 || r.DurationNs == 0 || r.Errors != 0 {
				t.Errorf("partial result %+v, want operations, a window and no error", r)
			}
			works(t, addr, tr)
		})
	}
}

// A server that goes away in mid-run costs one clear error and keeps the samples.
func TestServerThatDiesInMidRun(t *testing.T) {
	inner, server := tcpEnds(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(context.Background())
	posts := 0
	client := &fault{Transport: inner, post: func(s transports.Session, ops []transports.Op) (int, error) {
		if posts++; posts == 20_000 { // many are measured by then, however slow the machine is
			kill()
		}
		return s.Post(ops)
	}}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		(&Server{Open: openerOf(server)}).Serve(ctx, l)
	}()
	plan := quickPlan(Point{Workload: WorkloadLatency, Op: "send", Size: 64})
	plan.Iterations, plan.Duration = 0, time.Minute
	c, err := Connect(t.Context(), l.Addr().String(), client, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := c.Run(t.Context(), 0)
	wg.Wait()
	if reports.Code(err) != reports.ExitPeer {
		t.Errorf("error %v, want exit 5", err)
	}
	if r.Operations == 0 {
		t.Error("the samples before the loss are gone")
	}
}

func TestReadLineBoundsItsMemory(t *testing.T) {
	r := bufio.NewReader(io.MultiReader(strings.NewReader("one\n"), neverEnding('x')))
	if line, err := readLine(r); string(line) != "one" || err != nil {
		t.Fatalf("readLine = %q, %v", line, err)
	}
	if _, err := readLine(r); !errors.Is(err, errLine) {
		t.Errorf("an endless line: %v, want an error", err)
	}
}

type neverEnding byte

func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// No line makes the parser panic, and what it accepts is bounded.
func FuzzControlLine(f *testing.F) {
	for _, c := range badOpenings(f) {
		f.Add([]byte(c.line))
	}
	f.Add([]byte(planLine(f, nil)))
	f.Add([]byte(`{"type":"point","point":{"workload":"throughput","op":"write","size_bytes":64,"qps":1,"threads":1,"depth":16,"recv_depth":16,"moderation":2,"slots":16,"polling":"busy","arrival":"message","timeout_ns":1}}`))
	f.Add([]byte(`{"type":"stop","stop":{"lanes":[{"first":1,"count":2}],"check":true}}`))
	f.Add([]byte(`{"type":"listening","listening":{"addr":"x:1","token":"AAAAAAAAAAA="}}`))
	f.Add([]byte(`{"type":"error","error":{"code":4,"corruption":{"Offset":3}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		line, err := readLine(bufio.NewReader(bytes.NewReader(append(data, '\n'))))
		if err != nil {
			return
		}
		m, err := parseMessage(line)
		if err != nil {
			return
		}
		if m.Plan != nil && m.Plan.Validate() == nil {
			p := m.Plan.withDefaults()
			caps := transports.Caps{Kinds: 0xffff, Events: true, LastByteLast: true, MaxMsg: 1 << 32, MaxInline: 1 << 32, MaxDepth: 1 << 14}
			for _, pt := range p.Points[:min(len(p.Points), 4)] {
				if sh, err := newShape(&p, pt, caps, caps); err == nil {
					checkShape(t, sh)
				}
			}
		}
		if m.Shape != nil && m.Shape.validate() == nil {
			checkShape(t, m.Shape)
		}
		if m.Error != nil {
			if reports.Code(m.Error.asError("peer")) == reports.ExitOK {
				t.Error("a peer's error exits with 0")
			}
		}
	})
}

// checkShape holds the arithmetic that memory accesses rest on.
func checkShape(t *testing.T, sh *Shape) {
	t.Helper()
	if w := sh.window(); w <= 0 || w > 1<<36 {
		t.Fatalf("window of %d bytes: %+v", w, sh)
	}
	if sh.ring() < 1 || sh.ring()%sh.Slots != 0 || sh.ring()%sh.Moderation != 0 {
		t.Fatalf("ring %d does not repeat after slots %d and moderation %d", sh.ring(), sh.Slots, sh.Moderation)
	}
	if end := sh.rxSlot(sh.Slots-1) + sh.stride(); end > sh.ctlTx(0) || sh.ctlRx(ctlSlots) > sh.window() {
		t.Fatalf("regions overlap: %+v", sh)
	}
	if sh.creditEvery() > sh.RecvDepth || sh.batch() > sh.Depth || sh.totalWindow() < int64(sh.window()) {
		t.Fatalf("inconsistent: %+v", sh)
	}
}
