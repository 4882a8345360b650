package grpcrdma

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// rpc is a server and a client over one pair.
type rpc struct {
	*pair
	svc    *rpctest.Service
	client pb.TestServiceClient
}

func newRPC(t testing.TB, p provider, cfg Config) *rpc {
	t.Helper()
	r := &rpc{pair: newPair(t, p, cfg, cfg), svc: &rpctest.Service{}}
	server := grpc.NewServer(grpc.WaitForHandlers(true))
	pb.RegisterTestServiceServer(server, r.svc)
	over := make(chan error, 1)
	go func() { over <- server.Serve(r.l) }()
	cc := r.newClient("passthrough:///" + r.l.Addr().String())
	r.client = pb.NewTestServiceClient(cc)
	t.Cleanup(func() {
		cc.Close()
		server.Stop()
		must(t, <-over)
	})
	return r
}

func (r *rpc) newClient(target string, dial ...grpc.DialOption) *grpc.ClientConn {
	r.t.Helper()
	cc, err := grpc.NewClient(target, append([]grpc.DialOption{WithRDMA(r.a), plain()}, dial...)...)
	must(r.t, err)
	return cc
}

func (r *rpc) target() rpctest.Target {
	return rpctest.Target{Client: r.client, Waiting: r.svc.Waiting, Network: "rdma"}
}

func plain() grpc.DialOption { return grpc.WithTransportCredentials(insecure.NewCredentials()) }

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// Everything of gRPC that needs no special set-up, on one connection.
func TestGRPCUnchanged(t *testing.T) {
	everywhere(t, func(t *testing.T, p provider, cfg Config) {
		r := newRPC(t, p, cfg)
		for _, c := range rpctest.Cases {
			t.Run(c.Name, func(t *testing.T) { c.Run(t, r.target()) })
		}
	})
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

func TestResolverTargets(t *testing.T) {
	onEach(t, func(t *testing.T, p provider) {
		r := newRPC(t, p, Config{})
		cc := r.newClient("rdma:///"+r.l.Addr().String(), grpc.WithResolvers(Resolver()))
		defer cc.Close()
		_, err := pb.NewTestServiceClient(cc).EmptyCall(soon(t), &pb.Empty{})
		must(t, err)
		for _, target := range []string{"rdma:///nowhere", "rdma://authority/host:1", "rdma:///:1", "rdma:///"} {
			bad := r.newClient(target, grpc.WithResolvers(Resolver()))
			if _, err := pb.NewTestServiceClient(bad).EmptyCall(soon(t), &pb.Empty{}); err == nil ||
				!strings.Contains(err.Error(), "host:port") {
				t.Errorf("%s: %v", target, err)
			}
			bad.Close()
		}
	})
}

// A target or an address with the scheme means the same from any resolver: other
// resolvers pass it on whole, or cut some of it.
func TestOneSpellingThroughAnyResolver(t *testing.T) {
	r := newRPC(t, providers[1], Config{})
	at := r.l.Addr().String()
	for _, addr := range []string{"rdma:///" + at, "rdma://" + at} {
		other := manual.NewBuilderWithScheme("etcd-endpoints")
		other.InitialState(resolver.State{Addresses: []resolver.Address{{Addr: addr, ServerName: "127.0.0.1"}}})
		cc := r.newClient("etcd-endpoints:///any", grpc.WithResolvers(other))
		var from peer.Peer
		if _, err := pb.NewTestServiceClient(cc).EmptyCall(soon(t), &pb.Empty{}, grpc.Peer(&from)); err != nil ||
			from.Addr.Network() != "rdma" {
			t.Errorf("%s: %v, reached over %v", addr, err, from.Addr)
		}
		cc.Close()
	}
	// A client that has the resolver alone says what it lacks.
	cc, err := grpc.NewClient("rdma:///"+at, grpc.WithResolvers(Resolver()), plain())
	must(t, err)
	defer cc.Close()
	if _, err := pb.NewTestServiceClient(cc).EmptyCall(soon(t), &pb.Empty{}); err == nil ||
		!strings.Contains(err.Error(), "grpcrdma.WithRDMA") {
		t.Errorf("without WithRDMA: %v", err)
	}
}
