package fused_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
)

// The fused form: generated stubs and services unchanged. Both sides must be fused.
func Example() {
	dev, err := iwarp.Open(iwarp.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	n, err := grpcrdma.New(dev, grpcrdma.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()

	l, err := n.Listen(context.Background(), "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	srv, err := fused.NewServer(fused.Config{})
	if err != nil {
		log.Fatal(err)
	}
	healthpb.RegisterHealthServer(srv, health.NewServer())
	go srv.Serve(l)
	defer srv.Stop()

	dial := func(ctx context.Context) (net.Conn, error) { return n.DialContext(ctx, l.Addr().String()) }
	ch, err := fused.NewChannel(dial, fused.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer ch.Close()
	answer, err := healthpb.NewHealthClient(ch).Check(context.Background(), &healthpb.HealthCheckRequest{})
	fmt.Println(answer.GetStatus(), err)
	// Output: SERVING <nil>
}

// Under grpc-go's resolvers and policies: two servers, called in turns.
func ExampleNewClient() {
	dev, err := iwarp.Open(iwarp.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer dev.Close()
	n, err := grpcrdma.New(dev, grpcrdma.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer n.Close()
	var addrs []string
	for range 2 {
		l, err := n.Listen(context.Background(), "127.0.0.1:0")
		if err != nil {
			log.Fatal(err)
		}
		srv, err := fused.NewServer(fused.Config{})
		if err != nil {
			log.Fatal(err)
		}
		healthpb.RegisterHealthServer(srv, health.NewServer())
		go srv.Serve(l)
		defer srv.Stop()
		addrs = append(addrs, l.Addr().String())
	}

	ch, err := fused.NewClient("rdma:///"+strings.Join(addrs, ","), (&grpcrdma.Dialer{Net: n}).DialContext,
		fused.Config{
			Resolvers:     []resolver.Builder{grpcrdma.Resolver()},
			ServiceConfig: `{"loadBalancingConfig":[{"round_robin":{}}]}`})
	if err != nil {
		log.Fatal(err)
	}
	defer ch.Close()
	reached := map[string]bool{}
	for len(reached) < 2 { // the second connection stands a moment later
		var p peer.Peer
		if _, err := healthpb.NewHealthClient(ch).Check(context.Background(), &healthpb.HealthCheckRequest{},
			grpc.Peer(&p)); err != nil {
			log.Fatal(err)
		}
		reached[p.Addr.String()] = true
	}
	fmt.Println(len(reached), "servers answer")
	// Output: 2 servers answer
}
