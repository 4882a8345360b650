package interop

import (
	"bytes"
	"log/slog"
	"net"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	stock "google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
)

var fallbackCases = []suite{
	must("chan/without-rdma", "grpcrdma.Dialer",
		"A server that has no RDMA is called by TCP, which is logged once; a dialer without fallback does not reach it.",
		withoutRDMA).lacking(func(f carrier.Form) string {
		switch {
		case f.Frames():
			return "the fused channel has no form on TCP"
		case !f.OverRDMA():
			return "the form is TCP itself"
		}
		return ""
	}),
}

func withoutRDMA(e *env) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	e.must(err, "listen by TCP")
	s := grpc.NewServer()
	pb.RegisterTestServiceServer(s, stock.NewTestServer())
	go s.Serve(l) // its end is Stop's
	e.Cleanup(s.Stop)

	var said lines
	call := func(d *grpcrdma.Dialer) error {
		cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(), grpc.WithContextDialer(d.DialContext),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		e.must(err, "make a client")
		defer cc.Close()
		_, err = pb.NewTestServiceClient(cc).EmptyCall(e.soon(), &pb.Empty{})
		return err
	}
	log := slog.New(slog.NewTextHandler(&said, nil))
	d := &grpcrdma.Dialer{Net: e.net, Timeout: e.limit / 4, Log: log}
	for range 2 {
		e.must(call(d), "call a server without RDMA")
	}
	if n := strings.Count(said.String(), "falling back to tcp"); n != 1 {
		e.Errorf("the fallback is logged %d times, want once: %q", n, said.String())
	}
	err = call(&grpcrdma.Dialer{Net: e.net, NoFallback: true, Timeout: e.limit / 4, Log: log})
	if c := status.Code(err); c != codes.Unavailable {
		e.Errorf("without fallback: %v, want code %v", err, codes.Unavailable)
	}
}

// lines is what a logger wrote.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
