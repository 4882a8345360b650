package grpcrdma

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
)

// The benchmarks run their server in a process of its own: this test binary
// again, told by serverEnv what to serve. It prints its address and ends with its
// standard input.
const serverEnv = "GRPCRDMA_BENCH_SERVER"

// arms are the ways from client to server.
var arms = []struct {
	name string
	cfg  *Config // nil: TCP
}{
	{"tcp", nil},
	{"iwarp-bpev", &Config{}},
	{"iwarp-bp", &Config{Polling: bpev.Config{Mode: bpev.BP}}},
	{"iwarp-event", &Config{Polling: bpev.Config{Mode: bpev.Event}}},
}

func TestMain(m *testing.M) {
	if what := os.Getenv(serverEnv); what != "" {
		if err := serveBench(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	verify(m)
}

// over opens what an arm needs; done frees it.
func over(cfg *Config) (n *Net, done func(), err error) {
	if cfg == nil {
		return nil, func() {}, nil
	}
	dev, err := iwarp.Open(iwarp.Config{})
	if err != nil {
		return nil, nil, err
	}
	n, err = New(dev, *cfg)
	return n, func() { n.Close(); dev.Close() }, err
}

// serveBench serves "stream/ARM", an echo, or calls as "http2/ARM" or "fused/ARM".
func serveBench(what string) error {
	kind, arm, _ := strings.Cut(what, "/")
	for _, a := range arms {
		if a.name != arm {
			continue
		}
		n, done, err := over(a.cfg)
		if err != nil {
			return err
		}
		defer done()
		var l net.Listener
		if n == nil {
			l, err = net.Listen("tcp", "127.0.0.1:0")
		} else {
			l, err = n.Listen(context.Background(), "127.0.0.1:0")
		}
		if err != nil {
			return err
		}
		fmt.Println(l.Addr())
		go func() {
			io.Copy(io.Discard, os.Stdin)
			l.Close()
		}()
		switch kind {
		case "fused":
			s, err := fused.NewServer(fused.Config{MaxRecvMsgSize: 64 << 20})
			if err != nil {
				return err
			}
			pb.RegisterTestServiceServer(s, &rpctest.Service{})
			return s.Serve(l)
		case "http2":
			s := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
			pb.RegisterTestServiceServer(s, &rpctest.Service{})
			return s.Serve(l)
		}
		for {
			c, err := l.Accept()
			if err != nil {
				return nil
			}
			go io.Copy(c, struct{ io.Reader }{c})
		}
	}
	return fmt.Errorf("unknown arm %q", what)
}

// remote starts the server of an arm and gives its address.
func remote(b *testing.B, what string) string {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverEnv+"="+what)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	must(b, err)
	out, err := cmd.StdoutPipe()
	must(b, err)
	must(b, cmd.Start())
	b.Cleanup(func() { in.Close(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	must(b, err)
	return strings.TrimSpace(line)
}

// BenchmarkStream is a ping-pong on the byte stream alone, client and server in
// two processes.
func BenchmarkStream(b *testing.B) {
	for _, size := range []int{64, 1 << 20} {
		for _, a := range arms {
			b.Run(fmt.Sprintf("size=%d/arm=%s", size, a.name), func(b *testing.B) {
				addr := remote(b, "stream/"+a.name)
				n, done, err := over(a.cfg)
				must(b, err)
				defer done()
				var c net.Conn
				if n == nil {
					c, err = net.Dial("tcp", addr)
				} else {
					c, err = n.DialContext(soon(b), addr)
				}
				must(b, err)
				defer c.Close()
				buf, in := make([]byte, size), make([]byte, size)
				b.SetBytes(int64(2 * size))
				errs := make(chan error, 1)
				for b.Loop() {
					if size > 64<<10 { // more than both rings hold
						go func() { _, err := c.Write(buf); errs <- err }()
					} else {
						_, err := c.Write(buf)
						errs <- err
					}
					_, err := io.ReadFull(c, in)
					must(b, err)
					must(b, <-errs)
				}
			})
		}
	}
}

// BenchmarkUnary is a unary call with one outstanding, or 16, client and server
// in two processes: gRPC's HTTP/2 and fused frames, over loopback TCP and iWARP.
func BenchmarkUnary(b *testing.B) {
	for _, size := range []int{64, 1 << 20} {
		for _, calls := range []int{1, 16} {
			for _, frames := range []string{"http2", "fused"} {
				for _, a := range arms {
					b.Run(fmt.Sprintf("size=%d/calls=%d/frames=%s/arm=%s", size, calls, frames, a.name), func(b *testing.B) {
						addr := remote(b, frames+"/"+a.name)
						n, done, err := over(a.cfg)
						must(b, err)
						defer done()
						client, end := dialBench(b, frames, n, addr)
						defer end()
						benchUnary(b, client, size, calls)
					})
				}
			}
		}
	}
}

func dialBench(b *testing.B, frames string, n *Net, addr string) (pb.TestServiceClient, func() error) {
	if frames == "fused" {
		ch, err := fused.NewChannel(func(ctx context.Context) (net.Conn, error) {
			if n != nil {
				return n.DialContext(ctx, addr)
			}
			var d net.Dialer
			return d.DialContext(ctx, "tcp", addr)
		}, fused.Config{MaxRecvMsgSize: 64 << 20})
		must(b, err)
		return pb.NewTestServiceClient(ch), ch.Close
	}
	opts := []grpc.DialOption{plain(), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64 << 20))}
	if n != nil {
		opts = append(opts, WithRDMA(n))
	}
	cc, err := grpc.NewClient("passthrough:///"+addr, opts...)
	must(b, err)
	return pb.NewTestServiceClient(cc), cc.Close
}

func benchUnary(b *testing.B, client pb.TestServiceClient, size, calls int) {
	in := &pb.SimpleRequest{ResponseSize: int32(size), Payload: &pb.Payload{Body: make([]byte, size)}}
	_, err := client.UnaryCall(soon(b), in)
	must(b, err)
	b.SetBytes(int64(2 * size))
	if calls == 1 {
		for b.Loop() {
			if _, err := client.UnaryCall(context.Background(), in); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	work := make(chan struct{}, calls)
	errs := make(chan error, calls)
	for range calls {
		go func() {
			for range work {
				if _, err := client.UnaryCall(context.Background(), in); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	start := time.Now()
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	for range calls {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/time.Since(start).Seconds(), "calls/s")
}
