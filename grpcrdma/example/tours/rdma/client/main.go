// Command client takes a tour: a call of every kind.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/peer"

	"github.com/rdmaperf/rdmaperf/grpcrdma/example/tours/tour"
	"github.com/rdmaperf/rdmaperf/grpcrdma/rdmaenv"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:50052", "address of the server")
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
	g := tour.NewGuideClient(cc)
	for _, take := range []func(context.Context, tour.GuideClient) error{nearest, within, walk, chat} {
		if err := take(ctx, g); err != nil {
			log.Fatal(err)
		}
	}
}

// nearest asks once and is answered once.
func nearest(ctx context.Context, g tour.GuideClient) error {
	var from peer.Peer
	p, err := g.Nearest(ctx, &tour.Point{East: 1000, North: 1000}, grpc.Peer(&from))
	if err != nil {
		return err
	}
	fmt.Printf("nearest: %s (by %s)\n", p.GetName(), from.Addr.Network())
	return nil
}

// within asks once and reads a stream.
func within(ctx context.Context, g tour.GuideClient) error {
	s, err := g.Within(ctx, &tour.Circle{Middle: &tour.Point{}, Radius: 1500})
	if err != nil {
		return err
	}
	for {
		p, err := s.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println("within:", p.GetName())
	}
}

// walk writes a stream and is answered once.
func walk(ctx context.Context, g tour.GuideClient) error {
	s, err := g.Walk(ctx)
	if err != nil {
		return err
	}
	for i := range int32(6) {
		if err := s.Send(&tour.Point{East: 300 * i, North: 400 * i}); err != nil {
			return err
		}
	}
	sum, err := s.CloseAndRecv()
	if err != nil {
		return err
	}
	fmt.Printf("walk: %d metres by %d points\n", sum.GetMetres(), sum.GetPoints())
	return nil
}

// chat writes and reads at once.
func chat(ctx context.Context, g tour.GuideClient) error {
	s, err := g.Chat(ctx)
	if err != nil {
		return err
	}
	for _, text := range []string{"first", "second", "third"} {
		if err := s.Send(&tour.Note{At: &tour.Point{East: 300, North: 400}, Text: text}); err != nil {
			return err
		}
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	for {
		n, err := s.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		fmt.Println("chat:", n.GetText())
	}
}
