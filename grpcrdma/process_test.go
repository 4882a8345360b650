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
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/bpev"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
	"github.com/rdmaperf/rdmaperf/softstack/iwarp"
)

// Some tests and all benchmarks run their server in a process of its own: this
// test binary again, told by serverEnv what to serve. It prints its address and
// ends with its standard input.
const serverEnv = "GRPCRDMA_TEST_SERVER"

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
		if err := serveChild(what); err != nil {
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

// serveChild serves "stream/ARM", an echo, or calls as "http2/ARM" or "fused/ARM".
func serveChild(what string) error {
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
			s := grpc.NewServer(grpc.MaxRecvMsgSize(64<<20), grpc.WaitForHandlers(true))
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

// remote starts the server of an arm and gives its address and process.
func remote(b testing.TB, what string) (addr string, server *os.Process) {
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
	return strings.TrimSpace(line), cmd.Process
}

// dialFrames connects a client of "http2" or "fused" frames; n nil means TCP.
func dialFrames(b testing.TB, frames string, n *Net, addr string) (pb.TestServiceClient, func() error) {
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

// The sudden death of the server's process ends a call in progress within a bound,
// and nothing is left behind.
func TestKilledServerIsUnavailable(t *testing.T) {
	for _, frames := range []string{"http2", "fused"} {
		for _, a := range arms[1:] {
			t.Run(frames+"/"+a.name, func(t *testing.T) {
				addr, server := remote(t, frames+"/"+a.name)
				n, done, err := over(a.cfg)
				must(t, err)
				defer done()
				client, end := dialFrames(t, frames, n, addr)
				defer end()
				_, err = client.EmptyCall(soon(t), &pb.Empty{})
				must(t, err)
				got := make(chan error, 1)
				go func() {
					_, err := client.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: rpctest.Block})
					got <- err
				}()
				time.Sleep(20 * time.Millisecond)
				must(t, server.Kill())
				rpctest.Within(t, "a call to a killed server", func() {
					if err := <-got; status.Code(err) != codes.Unavailable {
						t.Errorf("%v", err)
					}
				})
			})
		}
	}
}
