package grpcrdma_test

import (
	"context"
	"fmt"
	"log"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
)

// The drop-in form: grpc-go's own server and client, whose byte stream is RDMA. With
// transports/verbs instead of softstack/iwarp the device is the machine's.
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
	srv := grpc.NewServer()
	healthpb.RegisterHealthServer(srv, health.NewServer())
	go srv.Serve(l)
	defer srv.Stop()

	cc, err := grpc.NewClient("rdma:///"+l.Addr().String(), grpcrdma.WithRDMA(n),
		grpc.WithResolvers(grpcrdma.Resolver()),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer cc.Close()
	answer, err := healthpb.NewHealthClient(cc).Check(context.Background(), &healthpb.HealthCheckRequest{})
	fmt.Println(answer.GetStatus(), err)
	// Output: SERVING <nil>
}
