package stack

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/internal/leaktest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
	"github.com/rdmaperf/rdmaperf/transports"
	"github.com/rdmaperf/rdmaperf/transports/callstest"
	"github.com/rdmaperf/rdmaperf/transports/internal/sessiontest"
	"github.com/rdmaperf/rdmaperf/transports/memdev"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func onMem(t testing.TB, cfg Config) (near, far *Stack, addr string) {
	t.Helper()
	f := memdev.NewFabric(memdev.Config{})
	make := func(name string) *Stack { return expect.Get(New(expect.Get(f.Open(name))(t), cfg))(t) }
	return make("near"), make("far"), ":0"
}

func onIWARP(t testing.TB, cfg Config) (near, far *Stack, addr string) {
	t.Helper()
	make := func() *Stack { return expect.Get(New(expect.Get(iwarp.Open(iwarp.Config{}))(t), cfg))(t) }
	return make(), make(), "127.0.0.1:0"
}

// ways are the devices that stacks are opened on.
var ways = map[string]func(testing.TB, Config) (near, far *Stack, addr string){"mem": onMem, "iwarp": onIWARP}

func TestSessions(t *testing.T) {
	for what, open := range ways {
		t.Run(what, func(t *testing.T) {
			sessiontest.Run(t, func(t testing.TB) (near, far transports.Transport, addr string) { return open(t, Config{}) })
		})
	}
}

func TestCalls(t *testing.T) {
	for what, open := range ways {
		for form, cfg := range map[string]Config{"": {}, " sends": {Sends: true}, " poll=node": {Polling: PollNode},
			" poll=adaptive": {Polling: PollAdaptive}} {
			t.Run(what+form, func(t *testing.T) {
				callstest.Run(t, func(t *testing.T) (client, server transports.CallTransport) {
					near, far, _ := open(t, cfg)
					t.Cleanup(func() { near.Close(); far.Close() })
					return near, far
				})
			})
		}
	}
}

// The users of a session take the queue pair of its port, whose number both ends have, so that
// what one side writes carries the acknowledgement of what the other wrote.
func TestASessionUsesTheQueuePairOfItsPort(t *testing.T) {
	near, far, addr := onMem(t, Config{})
	defer near.Close()
	defer far.Close()
	n := expect.Get(far.open(t.Context(), addr, "", 1<<20, nil))(t)
	defer n.Close()
	for _, port := range []int{3, 1, 4} {
		u := expect.Get(n.User(t.Context(), 4, 4))(t)
		expect.OK(t, u.Open(port, 64))
		v := expect.Get(u.WithPriority(3))(t)
		if a, b := u.(*user).QueuePair(), v.(*user).QueuePair(); a != port || b != port {
			t.Errorf("the users of port %d take the queue pairs %d and %d", port, a, b)
		}
		expect.OK(t, errors.Join(v.Close(), u.Close()))
	}
}

// A node that shows another secret than the listener's is no member: it makes no session,
// and who has it does so behind it.
func TestSessionsNeedTheSecret(t *testing.T) {
	near, far, addr := onMem(t, Config{})
	defer near.Close()
	defer far.Close()
	cfg := transports.Config{Window: 4096, SendDepth: 4, RecvDepth: 4, Secret: []byte("8 octets")}
	l := expect.Get(far.Listen(soon(t), addr, cfg))(t)
	defer l.Close()
	for _, wrong := range []string{"", "8 Octets"} {
		strange := cfg
		strange.Secret = []byte(wrong)
		if s, err := near.Dial(soon(t), l.Addr(), nil, strange); err == nil {
			s.Close()
			t.Errorf("with the secret %q there is a session", wrong)
		}
	}
	took, left := make(chan error, 1), make(chan struct{})
	go func() {
		s, _, err := l.Accept(soon(t))
		took <- err
		<-left
		if err == nil {
			s.Close()
		}
	}()
	defer close(left)
	s := expect.Get(near.Dial(soon(t), l.Addr(), nil, cfg))(t)
	defer s.Close()
	expect.OK(t, <-took)
}

// echo answers with the request.
type echo struct{}

func (echo) ServeCall(s *transports.Served) error {
	s.Response = s.Request.AppendTo(nil)
	return nil
}

// called is a client's connection and its server.
func called(t *testing.T, near, far *Stack, addr string, cfg transports.CallConfig) (*callServer, transports.CallConn) {
	t.Helper()
	l := expect.Get(far.ListenCalls(soon(t), addr, cfg, echo{}))(t)
	conn := expect.Get(near.DialCalls(soon(t), l.Addr(), cfg))(t)
	t.Cleanup(func() { expect.OK(t, errors.Join(conn.Close(), l.Close(), near.Close(), far.Close())) })
	return l.(*callServer), conn
}

// A server that nobody calls leaves its CPU to others, and the next call is answered all the same.
func TestAnIdleServerSleeps(t *testing.T) {
	near, far, addr := onIWARP(t, Config{})
	s, conn := called(t, near, far, addr, transports.CallConfig{MaxRequest: 64, MaxResponse: 64, Callers: 1, Conns: 1})
	caller := expect.Get(conn.Caller(soon(t), transports.CallerConfig{}))(t)
	defer caller.Close()
	least := mostSleep
	for range 5 {
		tick, ctx := time.NewTicker(time.Millisecond), soon(t)
		for !s.asleep.Load() {
			select {
			case <-tick.C:
			case <-ctx.Done():
				t.Fatal("the leader never sleeps")
			}
		}
		tick.Stop()
		began := time.Now()
		expect.OK(t, caller.Call(&transports.Call{Request: []byte("64 bytes")}))
		least = min(least, time.Since(began))
	}
	if least > mostSleep/2 {
		t.Errorf("a call that finds the server asleep takes %v: nothing wakes it", least)
	}
}

// As many connections of calls as a transport says share the queue pairs of one node.
func TestAThousandConnectionsShareANode(t *testing.T) {
	near, far, addr := onMem(t, Config{})
	n := near.Caps().MaxConns
	if n < 1024 {
		t.Fatalf("at most %d connections", n)
	}
	cfg := transports.CallConfig{MaxRequest: 64, MaxResponse: 64, Callers: 1, Conns: n}
	s, _ := called(t, near, far, addr, cfg)
	for i := 1; i < n; i++ {
		conn, err := near.DialCalls(soon(t), s.Addr(), cfg)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer conn.Close()
		caller, err := conn.Caller(soon(t), transports.CallerConfig{})
		if err == nil {
			defer caller.Close()
			err = caller.Call(&transports.Call{Request: []byte{byte(i)}})
		}
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	if pairs := near.Counts()[0].Values["queue_pairs"]; pairs != 4 {
		t.Errorf("%d queue pairs, want 4", pairs)
	}
}
