// Command client asks to be greeted.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/rdmaperf/rdmaperf/grpcrdma/example/helloworld/hello"
	"github.com/rdmaperf/rdmaperf/grpcrdma/rdmaenv"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:50051", "address of the server")
	name := flag.String("name", "world", "whom to greet")
	flag.Parse()
	cc, err := grpc.NewClient("passthrough:///"+*addr,
		rdmaenv.WithRDMA(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer cc.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := hello.NewGreeterClient(cc).Greet(ctx, &hello.GreetRequest{Name: *name})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s (by %s)\n", out.GetText(), out.GetNetwork())
}
