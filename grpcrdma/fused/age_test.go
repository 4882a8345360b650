package fused

import (
	"context"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// Connections that are old give way to new ones under a client that notices nothing;
// a call that outlives the grace, too, ends.
func TestOldConnectionsGiveWay(t *testing.T) {
	const age, grace = 50 * time.Millisecond, 200 * time.Millisecond
	svc := &rpctest.Service{}
	body := func(t *testing.T, c pb.TestServiceClient, dials *atomic.Int32) {
		begun := time.Now()
		for dials.Load() < 3 {
			if _, err := c.EmptyCall(soon(t), &pb.Empty{}, grpc.WaitForReady(true)); err != nil {
				t.Fatalf("on connection %d: %v", dials.Load(), err)
			}
			if time.Since(begun) > testTimeout {
				t.Fatalf("%d connections in %v", dials.Load(), testTimeout)
			}
		}
		s, err := c.FullDuplexCall(soon(t), grpc.WaitForReady(true))
		must(t, err)
		if _, err := s.Recv(); status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled ||
			err == io.EOF {
			t.Errorf("the call behind the grace: %v", err)
		}
	}
	t.Run("grpc(tcp)", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		srv := grpc.NewServer(grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: age,
			MaxConnectionAgeGrace: grace}))
		pb.RegisterTestServiceServer(srv, svc)
		go srv.Serve(l)
		defer srv.Stop()
		var dials atomic.Int32
		cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(), plain(),
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				dials.Add(1)
				var d net.Dialer
				return d.DialContext(ctx, "tcp", addr)
			}))
		must(t, err)
		defer cc.Close()
		body(t, pb.NewTestServiceClient(cc), &dials)
	})
	t.Run("grpc(fused)", func(t *testing.T) {
		l, dial, kill := arms[1].open(t)
		var dials atomic.Int32
		r := serve(t, "rdma", l, func(ctx context.Context) (net.Conn, error) { dials.Add(1); return dial(ctx) }, kill,
			Config{}, Config{MaxConnectionAge: age, MaxConnectionAgeGrace: grace})
		body(t, r.Client, &dials)
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

// A peer that takes nothing is given up with the stall limit.
func TestTheStallLimitIsWhatItSays(t *testing.T) {
	const limit = 200 * time.Millisecond
	near, far := net.Pipe()
	defer far.Close()
	go func() { // greets, and reads no more
		b := make([]byte, 64<<10)
		far.Read(b)
		far.Write(goodHello)
	}()
	ch, err := NewChannel(func(context.Context) (net.Conn, error) { return near, nil }, Config{StallLimit: limit})
	must(t, err)
	defer ch.Close()
	begun := time.Now()
	_, err = pb.NewTestServiceClient(ch).EmptyCall(soon(t), &pb.Empty{})
	if took := time.Since(begun); status.Code(err) != codes.Unavailable || took < limit || took > 50*limit {
		t.Errorf("%v after %v, want %v", err, took, limit)
	}
}

func plain() grpc.DialOption { return grpc.WithTransportCredentials(insecure.NewCredentials()) }
