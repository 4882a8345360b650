package fused

import (
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// Connections that are old give way to new ones under a client that notices nothing; a call that outlives the grace,
// too, ends.
func TestOldConnectionsGiveWay(t *testing.T) {
	const age, grace = 50 * time.Millisecond, 200 * time.Millisecond
	p := program{service: &rpctest.Service{},
		keep: keepalive.ServerParameters{MaxConnectionAge: age, MaxConnectionAgeGrace: grace}}
	sideBySide(t, p, func(t *testing.T, r *running) {
		until(t, "the third connection", func() bool {
			_, err := r.EmptyCall(soon(t), &pb.Empty{}, grpc.WaitForReady(true))
			must(t, err)
			return r.dials.Load() >= 3
		})
		s, err := r.FullDuplexCall(soon(t), grpc.WaitForReady(true))
		must(t, err)
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

// A peer that takes nothing is given up with the stall limit.
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
