package grpcrdma

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// rpc is a server and a client over one pair.
type rpc struct {
	*pair
	svc    *rpctest.Service
	server *grpc.Server
	cc     *grpc.ClientConn
	client pb.TestServiceClient
}

// newRPC serves and dials with the given options; without credentials in dial the
// connection is plain.
func newRPC(t testing.TB, p provider, cfg Config, serve []grpc.ServerOption, dial ...grpc.DialOption) *rpc {
	t.Helper()
	r := &rpc{pair: newPair(t, p, cfg, cfg), svc: &rpctest.Service{}}
	r.server = grpc.NewServer(append(serve, grpc.WaitForHandlers(true))...)
	pb.RegisterTestServiceServer(r.server, r.svc)
	over := make(chan error, 1)
	go func() { over <- r.server.Serve(r.l) }()
	if len(dial) == 0 {
		dial = append(dial, plain())
	}
	r.cc = r.newClient("passthrough:///"+r.l.Addr().String(), dial...)
	r.client = pb.NewTestServiceClient(r.cc)
	t.Cleanup(func() {
		r.cc.Close()
		r.server.Stop()
		must(t, <-over)
	})
	return r
}

func (r *rpc) newClient(target string, dial ...grpc.DialOption) *grpc.ClientConn {
	r.t.Helper()
	cc, err := grpc.NewClient(target, append([]grpc.DialOption{WithRDMA(r.a)}, dial...)...)
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
