package interop

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/channelz/grpc_channelz_v1"
	"google.golang.org/grpc/channelz/service"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/fused"
	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

var configCases = []suite{
	must("chan/round-robin", "grpc/grpc doc/load-balancing.md",
		"Under round_robin calls reach the servers of a target in turns.", func(e *env) {
			c := e.fleet(`{"loadBalancingConfig":[{"round_robin":{}}]}`, toCalls, toInterop)
			seen := map[string]int{}
			e.until(e.limit, "calls of both servers", func() bool {
				seen = map[string]int{}
				for range 10 {
					var p peer.Peer
					e.call(c, grpc.WaitForReady(true), grpc.Peer(&p))
					seen[p.Addr.String()]++
				}
				return len(seen) == 2
			})
			for range 10 {
				var p peer.Peer
				e.call(c, grpc.Peer(&p))
				seen[p.Addr.String()]++
			}
			e.note("%v", seen)
		}),
	must("chan/service-config", "grpc/grpc doc/service_config.md",
		"The service config of a resolver sets timeouts and longest messages of methods.", func(e *env) {
			const config = `{"methodConfig":[{"name":[{"service":"grpc.testing.TestService","method":"UnaryCall"}],
				"timeout":"0.2s","maxRequestMessageBytes":1000}]}`
			c := e.fleet(config, toCalls)
			_, err := c.stub.UnaryCall(e.ctx, &pb.SimpleRequest{ResponseSize: rpctest.Block})
			if status.Code(err) != codes.DeadlineExceeded {
				e.Errorf("a call that blocks: %v, want code %v", err, codes.DeadlineExceeded)
			}
			_, err = c.stub.UnaryCall(e.soon(), &pb.SimpleRequest{Payload: &pb.Payload{Body: make([]byte, 2000)}})
			if status.Code(err) != codes.ResourceExhausted {
				e.Errorf("a request above the limit: %v, want code %v", err, codes.ResourceExhausted)
			}
		}),
	must("chan/retries", "grpc/proposal A6",
		"A call that fails with a code of its retry policy is made again, as often as the policy says.", func(e *env) {
			const config = `{"methodConfig":[{"name":[{"service":"grpc.testing.TestService"}],"retryPolicy":{
				"maxAttempts":3,"initialBackoff":"0.002s","maxBackoff":"0.01s","backoffMultiplier":2,
				"retryableStatusCodes":["UNAVAILABLE"]}}]}`
			asked := e.open(toCalls, dialing{})
			for code, want := range map[codes.Code]int64{codes.Unavailable: 3, codes.NotFound: 1} {
				c := e.fleet(config, toInterop)
				before := e.ask(asked)
				_, err := c.stub.UnaryCall(e.soon(),
					&pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: int32(code), Message: "again"}})
				if status.Code(err) != code {
					e.Errorf("%v, want code %v", err, code)
				}
				if n := e.ask(asked).Unary - before.Unary; n != want {
					e.Errorf("%v was tried %d times, want %d", code, n, want)
				}
			}
		}),
	must("chan/connection-age", "grpc/proposal A9, MAX_CONNECTION_AGE",
		"A server ends an old connection in order, and calls go over the next.", func(e *env) {
			var dialed atomic.Int32
			c := e.open(toOld, dialing{dialed: func() { dialed.Add(1) }})
			for end := time.Now().Add(e.limit); dialed.Load() < 3; {
				e.call(c, grpc.WaitForReady(true))
				if time.Now().After(end) {
					e.Fatalf("%d connections were made in %v, want one every %v", dialed.Load(), e.limit, idleLimit)
				}
			}
		}),
	must("chan/channelz", "grpc/proposal A14", "Channelz lists the channel, with its target.", func(e *env) {
		c := e.open(toCalls, dialing{})
		e.call(c)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		e.must(err, "listen")
		srv := grpc.NewServer()
		service.RegisterChannelzServiceToServer(srv)
		e.served(srv, l)
		cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(), insecurely())
		e.must(err, "open a client")
		e.Cleanup(func() { cc.Close() })
		all, err := grpc_channelz_v1.NewChannelzClient(cc).GetTopChannels(e.soon(), &grpc_channelz_v1.GetTopChannelsRequest{})
		e.must(err, "ask channelz")
		for _, ch := range all.Channel {
			if strings.Contains(ch.Data.Target, e.peer.Addrs[toCalls]) && ch.Data.CallsSucceeded > 0 {
				return
			}
		}
		e.Errorf("no channel to %s with a call among %d", e.peer.Addrs[toCalls], len(all.Channel))
	}).lacking(notFused(fused.Unsupported["channelz"])),
	must("chan/server-compressor", "grpc-go, SetSendCompressor",
		"A handler learns what its client decompresses, and chooses.", func(e *env) {
			l, err := (&Server{form: e.form, net: e.net}).listen(e.ctx, "127.0.0.1:0")
			e.must(err, "listen")
			srv := grpc.NewServer()
			pb.RegisterTestServiceServer(srv, choosing{})
			e.served(srv, l)
			c, err := grpc.NewClient("passthrough:///"+l.Addr().String(), insecurely(), grpc.WithContextDialer(e.raw))
			e.must(err, "open a client")
			e.Cleanup(func() { c.Close() })
			m, err := pb.NewTestServiceClient(c).UnaryCall(e.soon(), &pb.SimpleRequest{})
			e.must(err, "call")
			if !strings.Contains(m.Username, "gzip") {
				e.Errorf("the handler learns of %q", m.Username)
			}
		}).lacking(notFused(fused.Unsupported["grpc.SetSendCompressor, grpc.ClientSupportedCompressors"])),
}

// fleet is a client of some of the server's addresses.
func (e *env) fleet(config string, variants ...string) *client {
	find := manual.NewBuilderWithScheme("fleet")
	var s resolver.State
	for _, v := range variants {
		s.Addresses = append(s.Addresses, resolver.Address{Addr: e.peer.Addrs[v]})
	}
	find.InitialState(s)
	return e.open(toCalls, dialing{target: "fleet:///servers.test", find: []resolver.Builder{find}, config: config})
}

func (e *env) served(srv *grpc.Server, l net.Listener) {
	over := make(chan error, 1)
	go func() { over <- srv.Serve(l) }()
	e.Cleanup(func() {
		srv.Stop()
		if err := <-over; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			e.Errorf("serve: %v", err)
		}
	})
}

type choosing struct {
	pb.UnimplementedTestServiceServer
}

func (choosing) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	names, err := grpc.ClientSupportedCompressors(ctx)
	if err != nil {
		return nil, err
	}
	return &pb.SimpleResponse{Username: strings.Join(names, ",")}, grpc.SetSendCompressor(ctx, "gzip")
}
