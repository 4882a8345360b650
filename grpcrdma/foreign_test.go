package grpcrdma

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
)

// A gRPC client over TCP that meets an RDMA server learns what it met, and the server's
// log has it; so it is with TLS, in the log.
func TestAClientWithoutRDMALearnsWhatItMet(t *testing.T) {
	var j journal
	e := newPair(t, providers[1], Config{}, Config{Log: j.logger()})
	go func() {
		for {
			if _, err := e.l.Accept(); err != nil {
				return
			}
		}
	}()
	addr := e.l.Addr().String()
	cc, err := grpc.NewClient("passthrough:///"+addr, plain())
	must(t, err)
	defer cc.Close()
	_, err = pb.NewTestServiceClient(cc).EmptyCall(soon(t), &pb.Empty{})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "RDMA") {
		t.Errorf("the client: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = pb.NewTestServiceClient(cc).EmptyCall(ctx, &pb.Empty{}, grpc.WaitForReady(true))
	if status.Code(err) != codes.Unavailable {
		t.Errorf("a call that waits for ready: %v", err)
	}
	if j.count("a client without rdma met this rdma listener") == 0 || j.count("HTTP/2 without RDMA") == 0 {
		t.Errorf("the server's log: %s", j.buf.String())
	}
	cc.Close()
	conn, err := net.Dial("tcp", addr)
	must(t, err)
	defer conn.Close()
	time.Sleep(foreignLogPause) // the log names one a second
	tc := tls.Client(conn, &tls.Config{ServerName: "x"})
	if err := tc.HandshakeContext(soon(t)); err == nil {
		t.Error("a handshake with an RDMA listener")
	}
	if j.count("TLS without RDMA") != 1 {
		t.Errorf("the server's log: %s", j.buf.String())
	}
}
