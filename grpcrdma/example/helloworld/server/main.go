// Command server greets who asks.
package main

import (
	"context"
	"flag"
	"log"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/peer"

	"github.com/rdmaperf/rdmaperf/grpcrdma/example/helloworld/hello"
)

type greeter struct {
	hello.UnimplementedGreeterServer
}

func (greeter) Greet(ctx context.Context, in *hello.GreetRequest) (*hello.GreetReply, error) {
	out := &hello.GreetReply{Text: "Hello, " + in.GetName()}
	if p, ok := peer.FromContext(ctx); ok {
		out.Network = p.Addr.Network()
	}
	return out, nil
}

func main() {
	addr := flag.String("addr", "127.0.0.1:50051", "address to serve at")
	flag.Parse()
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	hello.RegisterGreeterServer(s, greeter{})
	log.Printf("serving at %v", l.Addr())
	log.Fatal(s.Serve(l))
}
