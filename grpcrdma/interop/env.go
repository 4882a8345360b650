package interop

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/stats"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

// env is what one running case uses. It is the *testing.T of shared cases.
type env struct {
	form  carrier.Form
	net   *grpcrdma.Net // nil: TCP
	peer  Peer
	limit time.Duration // of whatever should be quick
	ctx   context.Context
	kids  Children

	mu       sync.Mutex
	wrong    []string
	notes    []string
	cleanups []func()
}

var _ rpctest.T = (*env)(nil)

func (e *env) Helper() {}

func (e *env) Cleanup(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cleanups = append(e.cleanups, f)
}

func (e *env) Errorf(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wrong = append(e.wrong, fmt.Sprintf(format, args...))
}

func (e *env) Fatalf(format string, args ...any) {
	e.Errorf(format, args...)
	runtime.Goexit()
}

func (e *env) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notes = append(e.notes, fmt.Sprintf(format, args...))
}

func (e *env) must(err error, doing string) {
	if err != nil {
		e.Fatalf("%s: %v", doing, err)
	}
}

// do runs the case and its clean-up, and returns what was wrong.
func (e *env) do(run func(*env)) []string {
	inOwn := func(f func()) { // Fatal ends a goroutine
		done := make(chan struct{})
		go func() {
			defer close(done)
			f()
		}()
		<-done
	}
	inOwn(func() { run(e) })
	for {
		e.mu.Lock()
		n := len(e.cleanups)
		if n == 0 {
			defer e.mu.Unlock()
			return e.wrong
		}
		f := e.cleanups[n-1]
		e.cleanups = e.cleanups[:n-1]
		e.mu.Unlock()
		inOwn(f)
	}
}

// soon is a context for something that should be quick.
func (e *env) soon() context.Context {
	ctx, cancel := context.WithTimeout(e.ctx, e.limit)
	e.Cleanup(cancel)
	return ctx
}

// until waits for a condition, and ends the case when that does not hold in time.
func (e *env) until(limit time.Duration, what string, holds func() bool) {
	for end := time.Now().Add(limit); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			e.Fatalf("%s: not within %v", what, limit)
		}
	}
}

// dialing shapes a client. The zero value is a plain connection.
type dialing struct {
	creds  credentials.TransportCredentials // nil for none
	unary  []grpc.UnaryClientInterceptor
	stream []grpc.StreamClientInterceptor
	stats  []stats.Handler
	target string             // of grpc.NewClient or fused.NewClient; empty for the server's address
	find   []resolver.Builder // of target's scheme
	config string             // service config; empty for none
	dialed func()             // sees every connection that is made
}

type client struct {
	conn  grpc.ClientConnInterface
	stub  pb.TestServiceClient
	close func() error
}

// open connects to a variant of the server. The case's end closes the client.
func (e *env) open(variant string, d dialing) *client {
	c, err := e.dial(e.peer.Addrs[variant], d)
	e.must(err, "open a client")
	e.Cleanup(func() {
		if err := c.close(); err != nil && err != grpc.ErrClientConnClosing {
			e.Errorf("close the client: %v", err)
		}
	})
	return c
}

func (e *env) dial(addr string, d dialing) (*client, error) {
	if addr == "" {
		return nil, fmt.Errorf("the server of %v has no such service", e.form)
	}
	connect := func(ctx context.Context, addr string) (net.Conn, error) {
		if d.dialed != nil {
			d.dialed()
		}
		return e.raw(ctx, addr)
	}
	if e.form.Frames() {
		return e.dialFused(addr, d, connect)
	}
	opts := []grpc.DialOption{grpc.WithTransportCredentials(cmp.Or(d.creds, insecure.NewCredentials())),
		grpc.WithContextDialer(connect), grpc.WithResolvers(d.find...),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithChainUnaryInterceptor(d.unary...), grpc.WithChainStreamInterceptor(d.stream...)}
	for _, h := range d.stats {
		opts = append(opts, grpc.WithStatsHandler(h))
	}
	if d.config != "" {
		opts = append(opts, grpc.WithDefaultServiceConfig(d.config))
	}
	cc, err := grpc.NewClient(cmp.Or(d.target, "passthrough:///"+addr), opts...)
	if err != nil {
		return nil, err
	}
	return &client{cc, pb.NewTestServiceClient(cc), cc.Close}, nil
}

func (e *env) dialFused(addr string, d dialing, dial func(context.Context, string) (net.Conn, error)) (*client, error) {
	cfg := fused.Config{UnaryClient: d.unary, StreamClient: d.stream, StatsHandlers: d.stats,
		MaxRecvMsgSize: maxMessage, ServiceConfig: d.config, Creds: d.creds, Resolvers: d.find}
	var ch *fused.Channel
	var err error
	if d.target == "" && d.config == "" {
		ch, err = fused.NewChannel(func(ctx context.Context) (net.Conn, error) { return dial(ctx, addr) }, cfg)
	} else {
		ch, err = fused.NewClient(cmp.Or(d.target, "passthrough:///"+addr), dial, cfg)
	}
	if err != nil {
		return nil, err
	}
	return &client{ch, pb.NewTestServiceClient(ch), ch.Close}, nil
}

// raw makes a connection without gRPC.
func (e *env) raw(ctx context.Context, addr string) (net.Conn, error) {
	if e.net == nil {
		return new(net.Dialer).DialContext(ctx, e.network(), addr)
	}
	// No fallback: RDMA is under test.
	return (&grpcrdma.Dialer{Net: e.net, NoFallback: true, Timeout: e.limit}).DialContext(ctx, addr)
}

// network is that of the addresses of connections.
func (e *env) network() string {
	if e.net == nil {
		return e.form.String()
	}
	return "rdma"
}

func (e *env) call(c *client, opts ...grpc.CallOption) {
	_, err := c.stub.EmptyCall(e.soon(), &pb.Empty{}, opts...)
	e.must(err, "call")
}

// ask returns what the server counts. It needs a client of its own.
func (e *env) ask(c *client) counts {
	var header metadata.MD
	_, err := c.stub.EmptyCall(metadata.AppendToOutgoingContext(e.soon(), askKey, "1"), &pb.Empty{},
		grpc.Header(&header))
	e.must(err, "ask the server")
	var n counts
	e.must(json.Unmarshal([]byte(strings.Join(header.Get(askKey), "")), &n), "ask the server")
	return n
}

func insecurely() grpc.DialOption { return grpc.WithTransportCredentials(insecure.NewCredentials()) }
