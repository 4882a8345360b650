// Command server guides along a trail.
package main

import (
	"flag"
	"log"

	"google.golang.org/grpc"

	"github.com/rdmaperf/rdmaperf/grpcrdma/example/tours/guide"
	"github.com/rdmaperf/rdmaperf/grpcrdma/example/tours/tour"
	"github.com/rdmaperf/rdmaperf/grpcrdma/rdmaenv"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:50052", "address to serve at")
	flag.Parse()
	l, err := rdmaenv.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	s := grpc.NewServer()
	tour.RegisterGuideServer(s, &guide.Guide{})
	log.Printf("serving at %v", l.Addr())
	log.Fatal(s.Serve(l))
}
