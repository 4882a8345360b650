package stack

import (
	"errors"
	"testing"
	"time"

	"github.com/rdmaperf/rdmaperf/internal/expect"
	"github.com/rdmaperf/rdmaperf/transports"
)

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
