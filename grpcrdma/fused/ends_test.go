package fused

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

func TestPeerDeathIsUnavailable(t *testing.T) {
	each(t, arms[:3], func(t *testing.T, a arm) {
		r := newRPC(t, a, Config{}, Config{})
		rpctest.Unary(t, r.Target)
		s := opened(t, r.Client)
		errs := make(chan error, 2)
		go func() {
			_, err := r.Client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: rpctest.Block})
			errs <- err
		}()
		go func() { _, err := s.Recv(); errs <- err }()
		r.svc.AwaitBegun(1)
		r.kill()
		rpctest.Within(t, "a call to a dead peer", func() {
			for range 2 {
				if err := <-errs; status.Code(err) != codes.Unavailable {
					t.Errorf("%v", err)
				}
			}
		})
		if err := s.Send(&pb.StreamingOutputCallRequest{}); err != io.EOF {
			t.Errorf("send on a lost stream: %v", err)
		}
	})
}

// What ended a stream is for RecvMsg to tell; SendMsg tells of its message only.
func TestSendLeavesTheReasonToReceive(t *testing.T) {
	r := newRPC(t, arms[0], Config{}, Config{})
	both := &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}
	down := &grpc.StreamDesc{ServerStreams: true}
	for _, tc := range []struct {
		name   string
		method string
		desc   *grpc.StreamDesc
		cancel bool
		send   error
		want   codes.Code
	}{
		{"cancelled", "/grpc.testing.TestService/FullDuplexCall", both, true, io.EOF, codes.Canceled},
		{"cancelled, one message", "/grpc.testing.TestService/StreamingOutputCall", down, true, nil, codes.Canceled},
		{"ended by the server", "/no.such/Method", both, false, io.EOF, codes.Unimplemented},
		{"ended by the server, one message", "/no.such/Method", down, false, nil, codes.Unimplemented},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(soon(t))
			defer cancel()
			s, err := r.ch.NewStream(ctx, tc.desc, tc.method)
			must(t, err)
			if tc.cancel {
				cancel()
			} else if _, err := s.Header(); err != nil { // waits for the end
				t.Fatal(err)
			}
			err = s.SendMsg(&pb.StreamingOutputCallRequest{})
			for tc.cancel && tc.send != nil && err == nil { // a message may slip out before the end is noticed
				err = s.SendMsg(&pb.StreamingOutputCallRequest{})
			}
			if err != tc.send {
				t.Errorf("send: %v, want %v", err, tc.send)
			}
			if err := s.RecvMsg(&pb.StreamingOutputCallResponse{}); status.Code(err) != tc.want {
				t.Errorf("receive: %v, want code %v", err, tc.want)
			}
		})
	}
}

// A channel connects anew when its connection is lost, and says why when it cannot.
func TestChannelReconnects(t *testing.T) {
	var refuse atomic.Bool
	l, dial, kill := arms[3].open(t)
	var last atomic.Pointer[net.Conn]
	r := serve(t, "tcp", l, func(ctx context.Context) (net.Conn, error) {
		if refuse.Load() {
			return nil, errors.New("out of order")
		}
		c, err := dial(ctx)
		last.Store(&c)
		return c, err
	}, kill, Config{}, Config{})
	rpctest.Unary(t, r.Target)
	(*last.Load()).Close()
	// The loss is noticed by the call that meets it, or before.
	var err error
	until(t, "the new connection", func() bool {
		if _, err = r.Client.EmptyCall(soon(t), &pb.Empty{}); err != nil && status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
		return err == nil
	})
	refuse.Store(true)
	(*last.Load()).Close()
	for range 3 {
		_, err = r.Client.EmptyCall(soon(t), &pb.Empty{})
	}
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("%v", err)
	}
	time.AfterFunc(20*time.Millisecond, func() { refuse.Store(false) })
	empty(t, r.Client, grpc.WaitForReady(true))
	must(t, r.ch.Close())
	if _, err := r.Client.EmptyCall(soon(t), &pb.Empty{}); status.Code(err) != codes.Canceled {
		t.Errorf("after Close: %v", err)
	}
}

func TestIdleLossIsDetectedBeforeTheCall(t *testing.T) {
	each(t, arms[:3], func(t *testing.T, a arm) {
		r := newRPC(t, a, Config{}, Config{})
		empty(t, r.Client)
		for ss := range r.sessions() {
			ss.fail(io.EOF)
		}
		until(t, "the end of the server's connection", func() bool { return len(r.sessions()) == 0 })
		until(t, "the end of the client's", r.ch.cur.conn.(interface{ Ended() bool }).Ended)
		time.Sleep(idleCheck)
		empty(t, r.Client)
	})
}

func TestGracefulStop(t *testing.T) {
	each(t, arms, func(t *testing.T, a arm) {
		r := newRPC(t, a, Config{}, Config{})
		s := opened(t, r.Client)
		echo(t, s)
		over := make(chan struct{})
		go func() { defer close(over); r.server.GracefulStop(context.Background()) }()
		// The call in progress goes on.
		for range 10 {
			echo(t, s)
			time.Sleep(time.Millisecond)
		}
		select {
		case <-over:
			t.Error("stopped with a call in progress")
		default:
		}
		end(t, s)
		rpctest.Within(t, "the graceful stop", func() { <-over })
		// One that lasts too long is ended with the context.
		r = newRPC(t, a, Config{}, Config{})
		go r.Client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: rpctest.Block})
		r.svc.AwaitBegun(1)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		rpctest.Within(t, "the end of grace", func() { r.server.GracefulStop(ctx) })
	})
}
