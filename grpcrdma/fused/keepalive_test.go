package fused

import (
	"context"
	"io"
	"maps"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/internal/fulltest"
)

func counting(dial dialer, n *atomic.Int32) dialer {
	return func(ctx context.Context) (net.Conn, error) { n.Add(1); return dial(ctx) }
}

func (r *rpc) sessions() map[*serverSession]struct{} {
	r.server.mu.Lock()
	defer r.server.mu.Unlock()
	return maps.Clone(r.server.sessions)
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(testTimeout); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: never", what)
		}
	}
}

// Who answers pings keeps a silent connection, with and without a call, whoever asks.
func TestPeersThatAnswerPingsAreKept(t *testing.T) {
	pings := Config{PingTime: 20 * time.Millisecond, PingTimeout: 5 * time.Second, PingIdle: true}
	for name, c := range map[string]struct{ client, server Config }{
		"the server asks": {server: pings}, "the client asks": {client: pings}, "both ask": {pings, pings},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "both ask" {
				fulltest.Only(t, "it waits for ten pings")
			}
			each(t, arms, func(t *testing.T, a arm) {
				l, dial, kill := a.open(t)
				var dials atomic.Int32
				r := serve(t, a.network, l, counting(dial, &dials), kill, c.client, c.server)
				empty(t, r.Client)
				heard := func() uint32 {
					for ss := range r.sessions() {
						return ss.received.Load() + r.ch.cur.received.Load()
					}
					return 0
				}
				was := heard()
				until(t, "pings on an idle connection", func() bool { return heard() >= was+5 })
				s := opened(t, r.Client)
				was = heard()
				until(t, "pings beside a silent stream", func() bool { return heard() >= was+5 })
				end(t, s)
				if n := dials.Load(); n != 1 || len(r.sessions()) != 1 {
					t.Errorf("%d connections were made", n)
				}
			})
		})
	}
}

func TestPeersThatAnswerNoPingAreGivenUp(t *testing.T) {
	pings := Config{PingTime: 20 * time.Millisecond, PingTimeout: 40 * time.Millisecond}
	t.Run("client", func(t *testing.T) {
		l, dial, kill := arms[1].open(t)
		r := serve(t, "rdma", l, dial, kill, Config{}, pings)
		c, err := dial(soon(t))
		must(t, err)
		defer c.Close()
		c.Write(goodHello)
		until(t, "the connection", func() bool { return len(r.sessions()) == 1 })
		until(t, "the end of a silent client", func() bool { return len(r.sessions()) == 0 })
	})
	t.Run("server", func(t *testing.T) {
		ch, err := NewChannel(greeting(t, func(far net.Conn) { io.Copy(io.Discard, far) }), pings)
		must(t, err)
		defer ch.Close()
		_, err = pb.NewTestServiceClient(ch).EmptyCall(soon(t), &pb.Empty{})
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "keepalive") {
			t.Errorf("%v", err)
		}
	})
}

// An idle connection ends in order, one with a call does not, and the next call makes another.
func TestIdleConnectionsEnd(t *testing.T) {
	const limit = 100 * time.Millisecond
	l, dial, kill := arms[1].open(t)
	var dials atomic.Int32
	r := serve(t, "rdma", l, counting(dial, &dials), kill, Config{}, Config{MaxConnectionIdle: limit})
	s := opened(t, r.Client)
	time.Sleep(2 * limit) // the call keeps it
	echo(t, s)
	ends := time.Now()
	end(t, s)
	until(t, "the end of the idle connection", func() bool { return len(r.sessions()) == 0 })
	if took := time.Since(ends); took < limit {
		t.Errorf("ended %v behind its call, want %v", took, limit)
	}
	rpctest.Unary(t, r.Target)
	if n := dials.Load(); n < 2 {
		t.Errorf("%d connections", n)
	}
}

// A client does not notice that its old connections are replaced. A call that outlives the grace ends.
func TestOldConnectionsGiveWay(t *testing.T) {
	const age, grace = 50 * time.Millisecond, 200 * time.Millisecond
	p := program{service: &rpctest.Service{},
		keep: keepalive.ServerParameters{MaxConnectionAge: age, MaxConnectionAgeGrace: grace}}
	sideBySide(t, p, func(t *testing.T, r *running) {
		until(t, "the third connection", func() bool {
			empty(t, r, grpc.WaitForReady(true))
			return r.dials.Load() >= 3
		})
		s := opened(t, r, grpc.WaitForReady(true))
		if _, err := s.Recv(); status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled || err == io.EOF {
			t.Errorf("the call behind the grace: %v", err)
		}
	})
}

func TestCallsOfUnknownServicesHaveAHandler(t *testing.T) {
	proxy := func(_ any, s grpc.ServerStream) error {
		name, _ := grpc.MethodFromServerStream(s)
		if err := s.RecvMsg(&pb.Empty{}); err != nil {
			return err
		}
		return s.SendMsg(&pb.SimpleResponse{Username: name})
	}
	r := newRPC(t, arms[0], Config{}, Config{UnknownService: proxy})
	var got pb.SimpleResponse
	for _, m := range []string{"/no.Such/Method", "/grpc.testing.TestService/NoSuch"} {
		if err := r.ch.Invoke(soon(t), m, &pb.Empty{}, &got); err != nil || got.Username != m {
			t.Errorf("%s: %q, %v", m, got.Username, err)
		}
	}
	rpctest.Unary(t, r.Target)
}

func TestTheStallLimitIsWhatItSays(t *testing.T) {
	const limit = 200 * time.Millisecond
	ch, err := NewChannel(greeting(t, func(net.Conn) {}), Config{StallLimit: limit})
	must(t, err)
	defer ch.Close()
	begun := time.Now()
	_, err = pb.NewTestServiceClient(ch).EmptyCall(soon(t), &pb.Empty{})
	if took := time.Since(begun); status.Code(err) != codes.Unavailable || took < limit || took > 50*limit {
		t.Errorf("%v after %v, want %v", err, took, limit)
	}
}
