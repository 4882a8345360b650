package drive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/cmd/rdmaperf/internal/engine"
	"github.com/rdmaperf/rdmaperf/reports"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// dialling is a stack whose n-th dial does what a test says.
type dialling struct {
	costing
	mu   sync.Mutex
	n    int
	dial func(ctx context.Context, n int) error
}

type conn struct {
	transports.CallConn
	closed int
}

func (c *conn) Close() error { c.closed++; return nil }

func (d *dialling) DialCalls(ctx context.Context, _ string, _ transports.CallConfig) (transports.CallConn, error) {
	d.mu.Lock()
	n := d.n
	d.n++
	d.mu.Unlock()
	if err := d.dial(ctx, n); err != nil {
		return nil, err
	}
	return &conn{}, nil
}

// connecting dials so many connections in a bubble.
func connecting(t *testing.T, qps int, ctx context.Context, dial func(ctx context.Context, n int) error,
	check func(k *Calls, took time.Duration, err error)) {
	t.Helper()
	bubble(t, func(t *testing.T) {
		m, k := point()
		m.Sh.QPs, m.Sh.Timeout, m.Sh.Layout.Window = qps, time.Second, 360
		k.groups = nil
		begin := time.Now()
		err := k.connect(ctx, &dialling{dial: dial}, "nowhere")
		check(k, time.Since(begin), err)
	})
}

// All connections together have the time of a point's set-up, and 10 ms each; none that was made ends the others.
func TestConnectionsHaveTheirTime(t *testing.T) {
	const qps = 3 * dialsAtOnce
	connecting(t, qps, context.Background(), func(ctx context.Context, n int) error {
		until, ok := ctx.Deadline()
		time.Sleep(time.Millisecond)
		if left := time.Until(until).Round(100 * time.Millisecond); !ok || left < time.Second+400*time.Millisecond ||
			left > time.Second+500*time.Millisecond {
			t.Errorf("dial %d has %v, want 1 s and 10 ms for each of %d", n, left, qps)
		}
		return ctx.Err()
	}, func(k *Calls, took time.Duration, err error) {
		if err != nil || took != 3*time.Millisecond {
			t.Fatalf("%v after %v, want %d dials at once", err, took, dialsAtOnce)
		}
		open := k.conns[1].(*conn)
		k.conns[0] = nil
		if k.close(); open.closed != 1 || k.conns[qps-1].(*conn).closed != 1 {
			t.Error("a connection is left open")
		}
	})
}

// One dial that fails ends the others at once, and is reported; one that waits for nobody any more is an interrupt.
func TestADialThatFailsEndsTheOthers(t *testing.T) {
	refused := fmt.Errorf("refused: %w", rdma.ErrNotSupported)
	wait := func(ctx context.Context, n int) error {
		if n == 3 {
			return refused
		}
		<-ctx.Done()
		return ctx.Err()
	}
	connecting(t, 2*dialsAtOnce, context.Background(), wait, func(k *Calls, took time.Duration, err error) {
		if !errors.Is(err, refused) || took != 0 {
			t.Errorf("%v after %v, want the dial that was refused", err, took)
		}
	})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	connecting(t, 1, ctx, wait, func(k *Calls, took time.Duration, err error) {
		if !errors.Is(err, engine.ErrInterrupted) {
			t.Errorf("%v, want an interrupt", err)
		}
	})
}

// Of several connections an error names the one that it came from.
func TestAFailedCallNamesItsConnection(t *testing.T) {
	m, k := point()
	m.Sh.Words = "calls"
	for qps, named := range map[int]bool{1: false, 2: true} {
		m.Sh.QPs = qps
		err := (&callWorker{k: k, conn: 1}).failed(errors.New("gone"))
		if got := strings.Contains(err.Error(), "connection 1:"); got != named {
			t.Errorf("of %d: %v", qps, err)
		}
	}
}

// Arrivals by chance are those of a point with a rate, of each caller by a seed of its own.
func TestOnlyCallsOfARateArriveByChance(t *testing.T) {
	for rate, chance := range map[float64]bool{0: false, 3000: true} {
		m, k := point()
		m.Plan.Arrivals, m.Sh.Rate, m.Sh.Seed = engine.ArrivalsPoisson, rate, 7
		k.conns = make([]transports.CallConn, 1)
		g := newCallGroup(CallGroup{Conns: 1, Each: 3, Rate: 3000,
			New: func(transports.CallConn, int) (engine.Caller, error) { return nobody{}, nil }})
		if err := g.hire(k); err != nil {
			t.Fatal(err)
		}
		for i, w := range g.workers {
			sharesARate(t, i, w.pace, w.shift, chance)
		}
	}
}

// A name of a machine or process is no host and port.
func TestNamesHaveNoHostAndPort(t *testing.T) {
	for addr, elsewhere := range map[string]bool{"127.0.0.1:5": false, "[::1]:5": false, "@name": true} {
		if noHostPort(addr) != elsewhere {
			t.Errorf("%s has no host and port: %v", addr, !elsewhere)
		}
	}
}

// A connection that fails without a known cause is the data path's.
func TestWhyAConnectionFailed(t *testing.T) {
	for name, c := range map[string]struct {
		caps transports.Caps
		err  error
		hint string
		code int
	}{
		"unknown":       {transports.Caps{}, errBroken, "the data path", reports.ExitPeer},
		"no more files": {transports.Caps{}, syscall.EMFILE, "ulimit", reports.ExitFailed},
		"rejected":      {transports.Caps{}, rdma.ErrNotSupported, "", reports.ExitNotRun},
		"one machine":   {transports.Caps{SameHost: true}, errBroken, "on this machine", reports.ExitPeer},
	} {
		err := ConnectFailed(with{caps: c.caps}, c.err)
		var exit *reports.ExitError
		if !errors.As(err, &exit) || exit.Code != c.code || !strings.Contains(exit.Hint, c.hint) ||
			!errors.Is(err, c.err) {
			t.Errorf("%s: %v (%+v)", name, err, exit)
		}
	}
}

// Whose progress keeps a phase going: that of the lead, and behind it of who is beside.
func TestWhoKeepsAPhaseGoing(t *testing.T) {
	lead, beside := &callGroup{tallies: make([]*tally, 1)}, &callGroup{tallies: make([]*tally, 2)}
	for _, c := range []struct {
		over   bool
		beside *callGroup
		want   int
	}{{false, nil, 1}, {true, nil, 1}, {false, beside, 1}, {true, beside, 2}} {
		r := &callRun{}
		r.over.Store(c.over)
		if got := len((&Calls{lead: lead, beside: c.beside}).watched(r)); got != c.want {
			t.Errorf("over %v, beside %v: %d, want %d", c.over, c.beside != nil, got, c.want)
		}
	}
}

// silent is a service that nobody calls.
type silent struct {
	transports.CallHandler
	begin error
	ended bool
}

func (s *silent) Begin(int) error     { return s.begin }
func (s *silent) End() (int64, error) { s.ended = true; return 0, nil }
func (s *silent) Close() error        { return nil }

// A phase of calls ends with what ended it, and what was begun is ended with it.
func TestWhatEndsAPhaseOfCalls(t *testing.T) {
	for name, c := range map[string]struct {
		begin, failure error
		interrupted    bool
		want           error
		ended          bool
	}{
		"an interrupt":            {nil, nil, true, context.Canceled, true},
		"a failure":               {nil, errBroken, false, errBroken, true},
		"one that does not begin": {errBroken, nil, false, errBroken, false},
	} {
		near, far := net.Pipe()
		running := make(chan struct{})
		go func() { // a client that sees the phase run
			defer close(running)
			far.SetReadDeadline(time.Now().Add(10 * time.Second))
			far.Read(make([]byte, 1<<16))
		}()
		ctx, cancel := context.WithCancel(context.Background())
		if c.interrupted {
			cancel()
		}
		failure := make(chan error, 1)
		if c.failure != nil {
			failure <- c.failure
		}
		svc := &silent{begin: c.begin}
		served := &engine.ServedClient{Server: &engine.Server{}, Ctl: &engine.Control{Conn: near, Alive: ctx}}
		if err := callPhase(ctx, served.NewServe(engine.Point{}, time.Minute), svc, failure,
			&engine.PhaseStart{Generation: engine.GenMeasure}); !errors.Is(err, c.want) || svc.ended != c.ended {
			t.Errorf("%s: %v, want %v; the service is ended: %v", name, err, c.want, svc.ended)
		}
		cancel()
		near.Close()
		<-running
		far.Close()
	}
}

type bad struct{}

func (bad) ServeCall(*transports.Served) error { panic("injected") }

// A panic of a handler is the error of its call.
func TestAPanicOfAHandlerIsTheErrorOfTheCall(t *testing.T) {
	err := Answers{CallHandler: bad{}}.ServeCall(new(transports.Served))
	if e := transports.AsCallError(err); e == nil || e.Code != transports.CallInternal ||
		!strings.Contains(e.Text, "injected") {
		t.Errorf("%v", err)
	}
}
