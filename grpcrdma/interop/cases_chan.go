package interop

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
	stock "google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma"
	"github.com/rdmaperf/rdmaperf/grpcrdma/carrier"
	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

var tlsCases = []suite{
	must("tls/server", "gRPC guide, authentication",
		"Calls over TLS succeed and report the server's certificate.", func(e *env) { secured(e, toTLS, false) }),
	must("tls/mutual", "gRPC guide, authentication",
		"Calls over TLS with certificates of both sides succeed.", func(e *env) { secured(e, toMutual, true) }),
	must("tls/untrusted", "gRPC guide, authentication",
		"No call reaches a server that the client does not trust, or that does not trust the client.", func(e *env) {
			other, err := rpctest.NewIdentity()
			e.must(err, "make another identity")
			// The second one shows no certificate.
			for variant, trusts := range map[string]rpctest.Identity{toTLS: other, toMutual: e.peer.Identity} {
				_, pool, err := trusts.Load()
				e.must(err, "read certificates")
				cfg := &tls.Config{RootCAs: pool, ServerName: rpctest.ServerName}
				_, err = e.open(variant, dialing{creds: credentials.NewTLS(cfg)}).stub.EmptyCall(e.soon(), &pb.Empty{})
				if status.Code(err) != codes.Unavailable {
					e.Errorf("%s: %v, want code %v", variant, err, codes.Unavailable)
				}
			}
		}),
}

func secured(e *env, variant string, mutual bool) {
	own, pool, err := e.peer.Identity.Load()
	e.must(err, "read certificates")
	cfg := &tls.Config{RootCAs: pool, ServerName: rpctest.ServerName}
	if mutual {
		cfg.Certificates = []tls.Certificate{own}
	}
	var from peer.Peer
	c := e.open(variant, dialing{creds: credentials.NewTLS(cfg)})
	_, err = c.stub.EmptyCall(e.soon(), &pb.Empty{}, grpc.Peer(&from))
	e.must(err, "call over TLS")
	if from.AuthInfo == nil || from.AuthInfo.AuthType() != "tls" {
		e.Errorf("the call was not secured: %v", from.AuthInfo)
	}
}

var channelCases = []suite{
	must("chan/interceptors", "gRPC guide, interceptors",
		"Interceptors of both sides see every unary call and every stream.", func(e *env) {
			var unary, streams atomic.Int64
			c := e.open(toCalls, dialing{
				unary: []grpc.UnaryClientInterceptor{func(ctx context.Context, m string, req, reply any,
					cc *grpc.ClientConn, call grpc.UnaryInvoker, o ...grpc.CallOption) error {
					unary.Add(1)
					return call(ctx, m, req, reply, cc, o...)
				}},
				stream: []grpc.StreamClientInterceptor{func(ctx context.Context, d *grpc.StreamDesc,
					cc *grpc.ClientConn, m string, open grpc.Streamer, o ...grpc.CallOption) (grpc.ClientStream, error) {
					streams.Add(1)
					return open(ctx, d, cc, m, o...)
				}}})
			asked := e.open(toCalls, dialing{})
			before := e.ask(asked)
			e.call(c)
			echo(e, c)
			after := e.ask(asked)
			if unary.Load() != 1 || streams.Load() != 1 || after.Unary-before.Unary != 1 || after.Streams-before.Streams != 1 {
				e.Errorf("of one call and one stream interceptors saw %d and %d at the client, %d and %d at the server",
					unary.Load(), streams.Load(), after.Unary-before.Unary, after.Streams-before.Streams)
			}
		}),
	must("chan/stats-handlers", "grpc-go package stats",
		"Stats handlers of both sides see begin, payloads and end of a call.", func(e *env) {
			var w watcher
			c, asked := e.open(toCalls, dialing{stats: []stats.Handler{&w}}), e.open(toCalls, dialing{})
			before := e.ask(asked)
			e.call(c)
			for kind, n := range map[string]*atomic.Int64{"begin": &w.begins, "out": &w.sent, "in": &w.received,
				"end": &w.ends} {
				if n.Load() != 1 {
					e.Errorf("the client's handler saw %d of %q", n.Load(), kind)
				}
			}
			// A server may note the end after the response. Each question is a call, too.
			e.until(e.limit, "the end of the call at the server's handler", func() bool {
				return e.ask(asked).Stats >= before.Stats+2
			})
		}),
	must("chan/keepalive-idle", "grpc/proposal A9, MAX_CONNECTION_IDLE",
		"A server ends an idle connection in order, and the next call makes a new one.", func(e *env) {
			var dialed atomic.Int32
			c := e.open(toIdle, dialing{dialed: func() { dialed.Add(1) }})
			e.call(c)
			if cc, ok := c.conn.(*grpc.ClientConn); ok {
				if !cc.WaitForStateChange(e.soon(), connectivity.Ready) {
					e.Fatalf("an idle connection outlives %v by %v", idleLimit, e.limit)
				}
			} else {
				asked := e.open(toCalls, dialing{})
				e.until(e.limit, "the end of an idle connection", func() bool { return e.ask(asked).Conns == 1 })
			}
			e.call(c)
			if dialed.Load() < 2 {
				e.Errorf("%d connections were made, want one more after the idle one ended", dialed.Load())
			}
		}),
	must("chan/keepalive-pings", "grpc/proposal A9, keepalive",
		"A client that answers pings keeps its silent stream.", func(e *env) {
			var dialed atomic.Int32
			c := e.open(toPings, dialing{dialed: func() { dialed.Add(1) }})
			s, err := c.stub.FullDuplexCall(e.ctx)
			e.must(err, "open a stream")
			for range 2 {
				e.must(s.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: []byte("echo")}}), "send on a stream")
				_, err := s.Recv()
				e.must(err, "receive on a stream that was silent")
				time.Sleep(pingEvery + 2*pingWait) // a ping and more than its wait
			}
			e.must(s.CloseSend(), "end a stream")
			if dialed.Load() != 1 {
				e.Errorf("%d connections were made, want one", dialed.Load())
			}
		}),
	must("chan/keepalive-silent", "grpc/proposal A9, keepalive",
		"A client that answers no ping is given up.", func(e *env) {
			if e.form.Frames() {
				keepSilentFused(e)
				return
			}
			c, err := e.raw(e.soon(), e.peer.Addrs[toPings])
			e.must(err, "dial")
			defer c.Close()
			// The connection preface and an empty SETTINGS frame (RFC 9113 §3.4, §6.5).
			_, err = c.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
			e.must(err, "greet")
			limit := pingEvery + pingWait + e.limit
			e.must(c.SetReadDeadline(time.Now().Add(limit)), "set a deadline")
			var ne net.Error
			if _, err := io.Copy(io.Discard, c); errors.As(err, &ne) && ne.Timeout() {
				e.Errorf("a silent client is kept for %v", limit)
			}
		}),
	must("chan/rdma-target", "package grpcrdma, Resolver",
		"A target rdma:///host:port is reached over RDMA.", func(e *env) {
			c := e.open(toCalls, dialing{target: grpcrdma.Scheme + ":///" + e.peer.Addrs[toCalls],
				find: []resolver.Builder{grpcrdma.Resolver()}})
			var from peer.Peer
			e.call(c, grpc.Peer(&from))
			if from.Addr.Network() != "rdma" {
				e.Errorf("reached over %s", from.Addr.Network())
			}
		}).lacking(func(f carrier.Form) string {
		if f.OverRDMA() {
			return ""
		}
		return "targets of the form rdma:///host:port are reached over RDMA"
	}),
}

var sizeCases = []suite{
	must("chan/large-messages", "gRPC guide, flow control",
		"Messages of 64 MiB cross a ring of 256 KiB in both directions, unchanged.", func(e *env) {
			const size = 64 << 20
			c := e.open(toCalls, dialing{})
			for _, way := range []struct{ up, down int }{{size, 1}, {1, size}} {
				in := &pb.SimpleRequest{ResponseSize: int32(way.down), Payload: &pb.Payload{Body: make([]byte, way.up)}}
				out, err := c.stub.UnaryCall(e.ctx, in)
				e.must(err, "call")
				body := out.GetPayload().GetBody()
				if len(body) != way.down {
					e.Fatalf("%d bytes came back, want %d", len(body), way.down)
				}
				for i := range body {
					if body[i] != byte(i)^byte(way.up) {
						e.Fatalf("byte %d of %d is %#x", i, way.down, body[i])
					}
				}
			}
		}).taking(3),
	must("chan/many-channels", "gRPC core concepts, channels",
		"Thirty-two channels call at once, and leave no connection behind.", func(e *env) {
			const channels = 32
			var group sync.WaitGroup
			for range channels {
				c := e.open(toCalls, dialing{})
				group.Go(func() {
					for range 10 {
						if _, err := c.stub.UnaryCall(e.ctx, &pb.SimpleRequest{ResponseSize: 100}); err != nil {
							e.Errorf("call: %v", err)
							return
						}
					}
				})
			}
			group.Wait()
			if e.net == nil {
				return
			}
			if n := e.net.Stats().Conns; n != channels {
				e.Errorf("%d connections for %d channels", n, channels)
			}
		}),
}

var fallbackCases = []suite{
	must("chan/without-rdma", "grpcrdma.Dialer",
		"A server that has no RDMA is called by TCP, which is logged once; a dialer without fallback does not reach it.",
		withoutRDMA).lacking(func(f carrier.Form) string {
		switch {
		case f.Frames():
			return "the fused channel has no form on TCP"
		case !f.OverRDMA():
			return "the form is TCP itself"
		}
		return ""
	}),
}

func withoutRDMA(e *env) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	e.must(err, "listen by TCP")
	s := grpc.NewServer()
	pb.RegisterTestServiceServer(s, stock.NewTestServer())
	e.served(s, l)
	var said tail
	call := func(d *grpcrdma.Dialer) error {
		cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(), d.DialOption(), insecurely())
		e.must(err, "make a client")
		defer cc.Close()
		_, err = pb.NewTestServiceClient(cc).EmptyCall(e.soon(), &pb.Empty{})
		return err
	}
	log := slog.New(slog.NewTextHandler(&said, nil))
	d := &grpcrdma.Dialer{Net: e.net, Timeout: e.limit / 4, Log: log}
	for range 2 {
		e.must(call(d), "call a server without RDMA")
	}
	if n := strings.Count(said.String(), "falling back to tcp"); n != 1 {
		e.Errorf("the fallback is logged %d times, want once: %q", n, said.String())
	}
	err = call(&grpcrdma.Dialer{Net: e.net, NoFallback: true, Timeout: e.limit / 4, Log: log})
	if c := status.Code(err); c != codes.Unavailable {
		e.Errorf("without fallback: %v, want code %v", err, codes.Unavailable)
	}
}

func echo(e *env, c *client) {
	s, err := c.stub.FullDuplexCall(e.soon())
	e.must(err, "open a stream")
	e.must(s.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: []byte("echo")}}), "send on a stream")
	m, err := s.Recv()
	e.must(err, "receive on a stream")
	if string(m.GetPayload().GetBody()) != "echo" {
		e.Errorf("%q came back", m.GetPayload().GetBody())
	}
	e.must(s.CloseSend(), "end a stream")
	if _, err := s.Recv(); err != io.EOF {
		e.Errorf("behind the end of a stream: %v", err)
	}
}

// watcher is a stats handler that counts kinds of events.
type watcher struct{ begins, sent, received, ends atomic.Int64 }

func (*watcher) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*watcher) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*watcher) HandleConn(context.Context, stats.ConnStats)                       {}
func (w *watcher) HandleRPC(_ context.Context, s stats.RPCStats) {
	switch s.(type) {
	case *stats.Begin:
		w.begins.Add(1)
	case *stats.OutPayload:
		w.sent.Add(1)
	case *stats.InPayload:
		w.received.Add(1)
	case *stats.End:
		w.ends.Add(1)
	}
}

// silence is a connection that receives nothing once it is frozen.
type silence struct {
	net.Conn
	frozen atomic.Bool
}

func (s *silence) Read(b []byte) (n int, err error) {
	n, err = s.Conn.Read(b)
	for s.frozen.Load() && err == nil {
		n, err = s.Conn.Read(b)
	}
	return n, err
}

func keepSilentFused(e *env) {
	var quiet *silence
	ch, err := fused.NewChannel(func(ctx context.Context) (net.Conn, error) {
		c, err := e.raw(ctx, e.peer.Addrs[toPings])
		quiet = &silence{Conn: c}
		return quiet, err
	}, fused.Config{})
	e.must(err, "open a client")
	e.Cleanup(func() { ch.Close() })
	_, err = pb.NewTestServiceClient(ch).EmptyCall(e.soon(), &pb.Empty{})
	e.must(err, "call")
	asked := e.open(toCalls, dialing{})
	quiet.frozen.Store(true)
	e.until(pingEvery+pingWait+e.limit, "the end of a client that answers no ping", func() bool {
		return e.ask(asked).Conns == 1
	})
}
