package grpcrdma

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/transports/rdma"
)

// journal keeps what was logged.
type journal struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.buf.Write(p)
}

func (j *journal) count(what string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Count(j.buf.String(), what)
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

// tcpServer is a gRPC server without RDMA.
func tcpServer(t *testing.T, addr string) string {
	t.Helper()
	l, err := net.Listen("tcp", addr)
	must(t, err)
	s := grpc.NewServer(grpc.WaitForHandlers(true))
	pb.RegisterTestServiceServer(s, &rpctest.Service{})
	over := make(chan error, 1)
	go func() { over <- s.Serve(l) }()
	t.Cleanup(func() { s.Stop(); must(t, <-over) })
	return l.Addr().String()
}

func TestFallbackToTCP(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		e := newPair(t, p, Config{}, Config{})
		addr := tcpServer(t, "127.0.0.1:0")
		var j journal
		d := &Dialer{Net: e.a, Log: j.logger()}
		call := func(cc *grpc.ClientConn) (string, error) {
			defer cc.Close()
			var from peer.Peer
			_, err := pb.NewTestServiceClient(cc).EmptyCall(soon(t), &pb.Empty{}, grpc.Peer(&from))
			if err != nil {
				return "", err
			}
			return from.Addr.Network(), nil
		}
		client := func(target string, opts ...grpc.DialOption) *grpc.ClientConn {
			cc, err := grpc.NewClient(target, append(opts, plain())...)
			must(t, err)
			return cc
		}
		for range 2 {
			network, err := call(client("passthrough:///"+addr, d.DialOption()))
			must(t, err)
			if network != "tcp" {
				t.Errorf("reached over %s", network)
			}
		}
		if n := j.count("falling back to tcp"); n != 1 || j.count(addr) == 0 {
			t.Errorf("the log says it %d times: %s", n, j.buf.String())
		}
		// Who asks for RDMA does not get TCP.
		for _, cc := range []*grpc.ClientConn{
			client("rdma:///"+addr, d.DialOption(), grpc.WithResolvers(Resolver())),
			client("passthrough:///"+addr, (&Dialer{Net: e.a, NoFallback: true}).DialOption()),
			client("rdma:///"+addr, grpc.WithResolvers(Resolver())), // no RDMA in the client at all
		} {
			if _, err := call(cc); status.Code(err) != codes.Unavailable {
				t.Errorf("%s: %v", cc.Target(), err)
			}
		}
		// A side without a device says so too.
		none := &Dialer{Log: j.logger()}
		if network, err := call(client("passthrough:///"+addr, none.DialOption())); network != "tcp" || err != nil {
			t.Errorf("without a device: %s, %v", network, err)
		}
		if j.count("no rdma device") != 1 {
			t.Errorf("the log: %s", j.buf.String())
		}
	})
}

func TestFallbackEndsWhenRDMAWorksAgain(t *testing.T) {
	p := providers[1] // an address both can have
	e := newPair(t, p, Config{}, Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	addr := l.Addr().String()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	var j journal
	d := &Dialer{Net: e.a, Log: j.logger()}
	c, err := d.DialContext(t.Context(), addr)
	must(t, err)
	c.Close()
	must(t, l.Close())
	rl, err := e.b.Listen(t.Context(), addr)
	must(t, err)
	go rl.Accept()
	c, err = d.DialContext(t.Context(), addr)
	must(t, err)
	if c.RemoteAddr().Network() != "rdma" || j.count("rdma works again") != 1 {
		t.Errorf("over %v; %s", c.RemoteAddr().Network(), j.buf.String())
	}
}

// A peer that accepts and says nothing must not use up the time for TCP.
func TestSilentPeerLeavesTimeForTCP(t *testing.T) {
	e := newPair(t, providers[1], Config{}, Config{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	var j journal
	d := &Dialer{Net: e.a, Timeout: 30 * time.Millisecond, Log: j.logger()}
	c, err := d.DialContext(soon(t), l.Addr().String())
	must(t, err)
	c.Close()
	if j.count("falling back") != 1 {
		t.Error(j.buf.String())
	}
}

func TestBothFailuresAreReported(t *testing.T) {
	e := newPair(t, providers[1], Config{}, Config{})
	must(t, e.l.Close())
	d := &Dialer{Net: e.a}
	_, err := d.DialContext(t.Context(), e.l.Addr().String())
	var op *net.OpError
	if !errors.Is(err, rdma.ErrUnreachable) || !errors.As(err, &op) || !strings.Contains(err.Error(), "by tcp") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := d.DialContext(ctx, e.l.Addr().String()); err == nil || strings.Contains(err.Error(), "by tcp") {
		t.Errorf("after the end of the context: %v", err)
	}
}
