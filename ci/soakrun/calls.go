package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/example/helloworld/hello"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
)

type greeter struct {
	hello.UnimplementedGreeterServer
}

func (greeter) Greet(_ context.Context, in *hello.GreetRequest) (*hello.GreetReply, error) {
	return &hello.GreetReply{Text: "Hello, " + in.GetName()}, nil
}

// network is RDMA over user-space iWARP, and what ends it.
func network() (*grpcrdma.Net, func(), error) {
	dev, err := iwarp.Open(iwarp.Config{})
	if err != nil {
		return nil, nil, err
	}
	n, err := grpcrdma.New(dev, grpcrdma.Config{})
	if err != nil {
		return nil, nil, errors.Join(err, dev.Close())
	}
	return n, func() { n.Close(); dev.Close() }, nil
}

// serveCalls is the server with both forms of gRPC over RDMA, until ctx ends. SIGUSR1
// makes it say what it holds, as rdmaperf's own servers do.
func serveCalls(ctx context.Context) error {
	n, end, err := network()
	if err != nil {
		return err
	}
	defer end()
	dropin, err := n.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	own, err := n.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	a := grpc.NewServer()
	hello.RegisterGreeterServer(a, greeter{})
	b, err := fused.NewServer(fused.Config{})
	if err != nil {
		return err
	}
	hello.RegisterGreeterServer(b, greeter{})
	ended := make(chan error, 2)
	go func() { ended <- a.Serve(dropin) }()
	go func() { ended <- b.Serve(own) }()
	defer b.Stop()
	defer a.Stop()
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGUSR1)
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	log.Info("listening", "addr", dropin.Addr().String(), "fused", own.Addr().String())
	for {
		select {
		case <-asked:
			debug.FreeOSMemory()
			log.Info("holds", "goroutines", runtime.NumGoroutine())
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// betweenCalls leaves the CPU to others.
const betweenCalls = 2 * time.Millisecond

// makeCalls calls for so long and compares every answer.
func makeCalls(ctx context.Context, form, addr string, size int, length time.Duration) error {
	n, end, err := network()
	if err != nil {
		return err
	}
	defer end()
	var cc grpc.ClientConnInterface
	switch form {
	case "dropin":
		c, err := grpc.NewClient("rdma:///"+addr, grpcrdma.WithRDMA(n), grpc.WithResolvers(grpcrdma.Resolver()),
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return err
		}
		defer c.Close()
		cc = c
	case "fused":
		c, err := fused.NewChannel(func(ctx context.Context) (net.Conn, error) { return n.DialContext(ctx, addr) },
			fused.Config{})
		if err != nil {
			return err
		}
		defer c.Close()
		cc = c
	default:
		return fmt.Errorf("-form %q: want dropin or fused", form)
	}
	client, name := hello.NewGreeterClient(cc), strings.Repeat("x", size)
	for until := time.Now().Add(length); time.Now().Before(until); {
		call, cancel := context.WithTimeout(ctx, 20*time.Second)
		out, err := client.Greet(call, &hello.GreetRequest{Name: name})
		cancel()
		if err != nil {
			return err
		}
		if out.GetText() != "Hello, "+name {
			return fmt.Errorf("%s: an answer of %d bytes to a request of %d is not the right one", form,
				len(out.GetText()), size)
		}
		time.Sleep(betweenCalls)
	}
	return nil
}
