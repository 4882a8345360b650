package fused

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/rdmaperf/rdmaperf/grpcrdma/internal/rpctest"
)

type duplex = grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]

// script is a service whose methods a test gives.
type script struct {
	rpctest.Service
	unary  func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error)
	stream func(duplex) error
}

func (s *script) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if s.unary == nil {
		return s.Service.UnaryCall(ctx, in)
	}
	return s.unary(ctx, in)
}

func (s *script) FullDuplexCall(d duplex) error {
	if s.stream == nil {
		return s.Service.FullDuplexCall(d)
	}
	return s.stream(d)
}

func incoming(keys ...string) *script {
	return &script{unary: func(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		var all []string
		for _, k := range keys {
			all = append(all, fmt.Sprintf("%s=%q", k, md[k]))
		}
		return &pb.SimpleResponse{Username: strings.Join(all, " ")}, nil
	}}
}

func TestWhatTheServerSeesOfItsClient(t *testing.T) {
	p := program{service: incoming(":authority", "user-agent", "content-type"), authority: "shop.test:443"}
	agent := "grpc-go/" + grpc.Version
	sideBySide(t, p, func(t *testing.T, r *running) {
		ask := func(want string, opts ...grpc.CallOption) {
			t.Helper()
			got, err := r.UnaryCall(soon(t), &pb.SimpleRequest{}, opts...)
			if err != nil || got.Username != want {
				t.Errorf("%q, %v, want %q", got.GetUsername(), err, want)
			}
		}
		ask(`:authority=["shop.test:443"] user-agent=["` + agent + `"] content-type=["application/grpc"]`)
		ask(`:authority=["other.test"] user-agent=["`+agent+`"] content-type=["application/grpc+proto"]`,
			grpc.CallAuthority("other.test"), grpc.CallContentSubtype("proto"))
	})
}

func TestMetadataIsValidated(t *testing.T) {
	p := program{service: incoming("plain", "te", "grpc-timeout", ":path", "blob-bin")}
	sideBySide(t, p, func(t *testing.T, r *running) {
		for _, c := range []struct {
			key, value string
			want       codes.Code
			sees       string
		}{
			{"plain", "v", codes.OK, `plain=["v"]`},
			{"PLAIN", "v", codes.OK, `plain=["v"]`},
			{"blob-bin", "\x00\xff\n", codes.OK, `blob-bin=["\x00\xff\n"]`},
			{"te", "mine", codes.OK, `te=[]`}, // reserved, left out
			{"grpc-timeout", "1S", codes.OK, `grpc-timeout=[]`},
			{":path", "/x", codes.OK, `:path=[]`},
			{"plain", "two\nlines", codes.Internal, ""},
			{"plain", "ümlaut", codes.Internal, ""},
			{"pl ain", "v", codes.Internal, ""},
			{"schlüssel", "v", codes.Internal, ""},
			{"", "v", codes.Internal, ""},
		} {
			ctx := metadata.NewOutgoingContext(soon(t), metadata.Pairs(c.key, c.value))
			got, err := r.UnaryCall(ctx, &pb.SimpleRequest{})
			if status.Code(err) != c.want || !strings.Contains(got.GetUsername(), c.sees) {
				t.Errorf("%q: %q: %q, %v, want %v %s", c.key, c.value, got.GetUsername(), err, c.want, c.sees)
			}
		}
	})
}

func TestLongMetadataAndStatus(t *testing.T) {
	const long = 200 << 10
	p := program{service: &script{unary: func(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		md, _ := metadata.FromIncomingContext(ctx)
		grpc.SetHeader(ctx, metadata.Pairs("h", strings.Join(md["up"], "")))
		grpc.SetTrailer(ctx, metadata.Pairs("t", strings.Join(md["up"], "")))
		if in.FillUsername {
			return nil, status.Error(codes.NotFound, strings.Repeat("not there ", long/10))
		}
		return &pb.SimpleResponse{Username: "body"}, nil
	}}}
	up := strings.Repeat("u", long)
	sideBySide(t, p, func(t *testing.T, r *running) {
		var wg sync.WaitGroup
		for range 8 { // parts of one call do not mix with those of others
			wg.Go(func() {
				var header, trailer metadata.MD
				ctx := metadata.AppendToOutgoingContext(soon(t), "up", up)
				m, err := r.UnaryCall(ctx, &pb.SimpleRequest{Payload: &pb.Payload{Body: make([]byte, 70<<10)}},
					grpc.Header(&header), grpc.Trailer(&trailer))
				if err != nil || m.Username != "body" || strings.Join(header["h"], "") != up ||
					strings.Join(trailer["t"], "") != up {
					t.Errorf("%v, header of %d, trailer of %d bytes", err, len(strings.Join(header["h"], "")),
						len(strings.Join(trailer["t"], "")))
				}
				_, err = r.UnaryCall(soon(t), &pb.SimpleRequest{FillUsername: true})
				if s := status.Convert(err); s.Code() != codes.NotFound || len(s.Message()) < long {
					t.Errorf("%v with %d bytes", s.Code(), len(s.Message()))
				}
			})
		}
		wg.Wait()
	})
	// Beyond the limit of the other side a call fails, and the connection does not.
	t.Run("grpc(fused), beyond the limit", func(t *testing.T) {
		r := p.run(t, overFused)
		ctx := metadata.AppendToOutgoingContext(soon(t), "up", strings.Repeat("u", 17<<20))
		if _, err := r.UnaryCall(ctx, &pb.SimpleRequest{}); status.Code(err) != codes.Internal {
			t.Errorf("17 MiB of metadata: %v", err)
		}
		if _, err := r.UnaryCall(soon(t), &pb.SimpleRequest{}); err != nil {
			t.Errorf("the call behind it: %v", err)
		}
	})
}

func TestInvalidUTF8InAStatus(t *testing.T) {
	p := program{service: &script{unary: func(context.Context, *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		return nil, status.Error(codes.Aborted, "a\xff\xfeb ü\n")
	}}}
	sideBySide(t, p, func(t *testing.T, r *running) {
		_, err := r.UnaryCall(soon(t), &pb.SimpleRequest{})
		if got := status.Convert(err).Message(); got != "a\ufffd\ufffdb ü\n" {
			t.Errorf("%q", got)
		}
	})
}

func TestTwoRequestsOnAUnaryMethod(t *testing.T) {
	p := program{service: &script{}}
	sideBySide(t, p, func(t *testing.T, r *running) {
		for _, n := range []int{0, 1, 2} {
			s, err := r.cc.NewStream(soon(t), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true},
				pb.TestService_UnaryCall_FullMethodName)
			must(t, err)
			for range n {
				must(t, s.SendMsg(&pb.SimpleRequest{}))
			}
			must(t, s.CloseSend())
			var m pb.SimpleResponse
			err = s.RecvMsg(&m)
			if want := map[bool]codes.Code{true: codes.OK, false: codes.Internal}[n == 1]; status.Code(err) != want {
				t.Errorf("%d requests: %v, want %v", n, err, want)
			}
		}
	})
}

func TestUseOfAStreamBehindItsEnd(t *testing.T) {
	over := make(chan duplex, 1)
	p := program{service: &script{stream: func(d duplex) error { over <- d; return nil }}}
	sideBySide(t, p, func(t *testing.T, r *running) {
		s := opened(t, r)
		if _, err := s.Recv(); err != io.EOF {
			t.Fatal(err)
		}
		d := <-over
		<-d.Context().Done()
		for what, c := range map[string]struct {
			err  error
			want codes.Code
		}{
			"send":        {d.Send(&pb.StreamingOutputCallResponse{}), codes.Canceled},
			"set header":  {d.SetHeader(metadata.Pairs("a", "b")), codes.Internal},
			"send header": {d.SendHeader(metadata.Pairs("a", "b")), codes.Canceled},
		} {
			if status.Code(c.err) != c.want {
				t.Errorf("%s: %v, want %v", what, c.err, c.want)
			}
		}
	})
}

func TestHeadersAndTrailersOfHandlers(t *testing.T) {
	for _, c := range []struct {
		name            string
		stream          func(duplex) error
		want            codes.Code
		header, trailer metadata.MD
	}{
		{"header that is not valid", func(d duplex) error { return d.SendHeader(metadata.Pairs("pl ain", "v")) },
			codes.Internal, nil, nil},
		{"header sent twice", func(d duplex) error {
			return errors.Join(d.SendHeader(metadata.Pairs("a", "b")), d.SendHeader(metadata.Pairs("a", "c")))
		}, codes.Internal, metadata.Pairs("a", "b", "content-type", "application/grpc"), nil},
		// An answer without a header and a message is one list for gRPC.
		{"trailers only", func(d duplex) error {
			d.SetTrailer(metadata.Pairs("t", "v"))
			return status.Error(codes.Aborted, "no")
		}, codes.Aborted, nil, metadata.Pairs("t", "v", "content-type", "application/grpc")},
	} {
		t.Run(c.name, func(t *testing.T) {
			sideBySide(t, program{service: &script{stream: c.stream}}, func(t *testing.T, r *running) {
				s := opened(t, r)
				if _, err := s.Recv(); status.Code(err) != c.want {
					t.Errorf("%v, want %v", err, c.want)
				}
				header, err := s.Header()
				if len(header) > 0 && c.header == nil || err != nil && c.header != nil {
					t.Errorf("header %v, %v", header, err)
				}
				trailer := s.Trailer()
				for k, want := range c.header {
					if !slices.Equal(header[k], want) {
						t.Errorf("header %v, want %v", header, c.header)
					}
				}
				for k, want := range c.trailer {
					if !slices.Equal(trailer[k], want) {
						t.Errorf("trailer %v, want %v", trailer, c.trailer)
					}
				}
			})
		})
	}
}

type failing struct{ err error }

func (f failing) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"Token": "two\nlines"}, f.err
}
func (failing) RequireTransportSecurity() bool { return false }

func TestCodesOfFailingCredentials(t *testing.T) {
	sideBySide(t, program{service: &script{}}, func(t *testing.T, r *running) {
		for _, c := range []struct {
			cred credentials.PerRPCCredentials
			want codes.Code
		}{
			{failing{errors.New("no token")}, codes.Internal},
			{failing{status.Error(codes.NotFound, "no token")}, codes.Internal}, // a code of servers alone
			{failing{status.Error(codes.PermissionDenied, "no token")}, codes.PermissionDenied},
			{failing{}, codes.Internal}, // metadata that cannot travel
			{token{secure: true}, codes.Unauthenticated},
		} {
			_, err := r.EmptyCall(soon(t), &pb.Empty{}, grpc.PerRPCCredentials(c.cred))
			if status.Code(err) != c.want {
				t.Errorf("%v: %v, want %v", c.cred, err, c.want)
			}
		}
	})
}

func TestPeersWithoutTLS(t *testing.T) {
	seen := make(chan *peer.Peer, 1)
	p := program{service: &script{stream: func(d duplex) error {
		who, _ := peer.FromContext(d.Context())
		seen <- who
		return nil
	}}}
	sideBySide(t, p, func(t *testing.T, r *running) {
		s := opened(t, r)
		if _, err := s.Recv(); err != io.EOF {
			t.Fatal(err)
		}
		mine, ok := peer.FromContext(s.Context())
		if !ok {
			t.Fatal("no peer in the context of the client's stream")
		}
		var option peer.Peer
		empty(t, r, grpc.Peer(&option))
		if who := <-seen; who == nil || who.AuthInfo != nil || who.Addr == nil { // a server without credentials
			t.Errorf("the handler sees %+v", who)
		}
		for who, p := range map[string]*peer.Peer{"stream": mine, "option": &option} {
			info, ok := p.AuthInfo.(interface {
				GetCommonAuthInfo() credentials.CommonAuthInfo
			})
			if !ok || p.AuthInfo.AuthType() != "insecure" ||
				info.GetCommonAuthInfo().SecurityLevel != credentials.NoSecurity || p.Addr == nil {
				t.Errorf("%s sees %+v", who, p)
			}
		}
	})
}

func TestUnknownServices(t *testing.T) {
	sideBySide(t, program{service: &script{}}, func(t *testing.T, r *running) {
		for _, m := range []string{"/no.Such/Method", "/grpc.testing.TestService/NoSuch", "/x"} {
			if err := r.cc.Invoke(soon(t), m, &pb.Empty{}, &pb.Empty{}); status.Code(err) != codes.Unimplemented {
				t.Errorf("%s: %v", m, err)
			}
		}
	})
}

// A call that waits for a server that is not there says at its deadline what was in the way.
func TestTheDeadlineOfAWaitNamesTheCause(t *testing.T) {
	l, dial, _ := arms[3].open(t)
	l.Close()
	cc, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer cc.Close()
	ch, err := NewChannel(dial, Config{})
	must(t, err)
	defer ch.Close()
	for form, c := range map[string]grpc.ClientConnInterface{"grpc(tcp)": cc, "grpc(fused)": ch} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := pb.NewTestServiceClient(c).EmptyCall(ctx, &pb.Empty{}, grpc.WaitForReady(true))
		cancel()
		if status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("%s: %v", form, err)
		}
	}
}

// events keeps the names of stats events in order, and what must be in them.
type events struct {
	mu      sync.Mutex
	rpc     []string
	conn    []string
	bad     []string
	in, out int    // bytes of messages
	begun   []bool // a transparent retry
	ended   []error
}

type tagKey struct{}

func (e *events) TagRPC(ctx context.Context, i *stats.RPCTagInfo) context.Context {
	e.add(&e.rpc, "TagRPC")
	return context.WithValue(ctx, tagKey{}, i.FullMethodName)
}

func (e *events) TagConn(ctx context.Context, i *stats.ConnTagInfo) context.Context {
	if i.RemoteAddr == nil || i.LocalAddr == nil {
		e.add(&e.bad, "TagConn without addresses")
	}
	e.add(&e.conn, "TagConn")
	return ctx
}

func (e *events) HandleConn(_ context.Context, s stats.ConnStats) {
	e.add(&e.conn, strings.TrimPrefix(fmt.Sprintf("%T", s), "*stats."))
}

func (e *events) HandleRPC(ctx context.Context, s stats.RPCStats) {
	bad := ctx.Value(tagKey{}) == nil
	e.mu.Lock()
	switch s := s.(type) {
	case *stats.Begin:
		e.begun = append(e.begun, s.IsTransparentRetryAttempt)
	case *stats.InHeader:
		bad = bad || s.WireLength == 0
	case *stats.InTrailer:
		bad = bad || s.WireLength == 0
	case *stats.InPayload:
		e.in += s.Length
		bad = bad || s.Length > 0 && (s.CompressedLength < s.Length || s.WireLength <= s.CompressedLength)
	case *stats.OutHeader:
		bad = bad || s.Client && (s.FullMethod == "" || s.Authority == "" || s.RemoteAddr == nil)
	case *stats.OutPayload:
		e.out += s.Length
	case *stats.End:
		e.ended = append(e.ended, s.Error)
	}
	e.mu.Unlock()
	if bad {
		e.add(&e.bad, fmt.Sprintf("%T %+v, its tag %v", s, s, ctx.Value(tagKey{})))
	}
	e.add(&e.rpc, strings.TrimPrefix(fmt.Sprintf("%T", s), "*stats."))
}

func (e *events) transparent() []bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.begun)
}

func (e *events) add(to *[]string, s string) {
	e.mu.Lock()
	*to = append(*to, s)
	e.mu.Unlock()
}

// take gives the events of calls, once the last of them is End.
func (e *events) take(t *testing.T) (all string) {
	t.Helper()
	until(t, "End", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		if n := len(e.rpc); n == 0 || e.rpc[n-1] != "End" {
			return false
		}
		all, e.rpc = strings.Join(e.rpc, " "), nil
		return true
	})
	return all
}

func TestStatsEventsComeInGRPCsOrder(t *testing.T) {
	for _, c := range []struct {
		name           string
		call           func(t *testing.T, r *running)
		client, server string
		want           codes.Code
	}{
		{"a unary call", func(t *testing.T, r *running) {
			_, err := r.UnaryCall(soon(t), &pb.SimpleRequest{ResponseSize: 10})
			must(t, err)
		}, "TagRPC Begin OutHeader OutPayload InHeader InPayload InTrailer End",
			"TagRPC InHeader Begin InPayload OutHeader OutPayload OutTrailer End", codes.OK},
		{"an error", func(t *testing.T, r *running) {
			r.UnaryCall(soon(t), &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: 5, Message: "no"}})
		}, "TagRPC Begin OutHeader OutPayload InTrailer End", "TagRPC InHeader Begin InPayload OutTrailer End",
			codes.NotFound},
		{"a stream", func(t *testing.T, r *running) {
			s, err := r.StreamingOutputCall(soon(t),
				&pb.StreamingOutputCallRequest{ResponseParameters: []*pb.ResponseParameters{{Size: 3}, {Size: 4}}})
			must(t, err)
			for err == nil {
				_, err = s.Recv()
			}
		}, "TagRPC Begin OutHeader OutPayload InHeader InPayload InPayload InTrailer End",
			"TagRPC InHeader Begin InPayload OutHeader OutPayload OutPayload OutTrailer End", codes.OK},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, form := range []string{overTCP, overFused} {
				t.Run(form, func(t *testing.T) {
					client, server := &events{}, &events{}
					p := program{service: &script{}, clientStats: []stats.Handler{client},
						serverStats: []stats.Handler{server}}
					r := p.run(t, form)
					r.EmptyCall(soon(t), &pb.Empty{})
					// grpc-go may have connected before
					if got := client.take(t); r.form == overFused && !strings.Contains(got, "Begin DelayedPickComplete OutHeader") {
						t.Errorf("the first call: %s", got)
					}
					server.take(t)
					c.call(t, r)
					// grpc-go's reader reports the trailer before or behind the messages, those that are sent, too.
					got := client.take(t)
					if i := strings.Index(got, " InTrailer"); i > 0 {
						got = strings.TrimSuffix(got[:i]+got[i+len(" InTrailer"):], " End") + " InTrailer End"
					}
					if got != c.client {
						t.Errorf("client %s\nwant   %s", got, c.client)
					}
					if got := server.take(t); got != c.server {
						t.Errorf("server %s\nwant   %s", got, c.server)
					}
					for side, e := range map[string]*events{"client": client, "server": server} {
						e.mu.Lock()
						if !slices.Equal(e.conn, []string{"TagConn", "ConnBegin"}) || len(e.bad) > 0 ||
							status.Code(e.ended[1]) != c.want {
							t.Errorf("%s: of the connection %v, ended with %v, wrong: %v", side, e.conn, e.ended, e.bad)
						}
						e.mu.Unlock()
					}
					if client.in != server.out || client.out != server.in || c.want == codes.OK && client.in == 0 {
						t.Errorf("the client has %d of %d bytes, the server %d of %d", client.in, server.out, server.in, client.out)
					}
					r.stop[0]()
					until(t, "ConnEnd", func() bool {
						server.mu.Lock()
						defer server.mu.Unlock()
						return slices.Contains(server.conn, "ConnEnd")
					})
				})
			}
		})
	}
}

// What grpc-go keeps to itself fails with an error, and the call goes on: it is never ignored in silence.
func TestCompressorsOfTheServerAreRefused(t *testing.T) {
	asked := make(chan [2]error, 1)
	p := program{service: &script{unary: func(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
		_, list := grpc.ClientSupportedCompressors(ctx)
		asked <- [2]error{grpc.SetSendCompressor(ctx, "identity"), list}
		return &pb.SimpleResponse{}, nil
	}}}
	sideBySide(t, p, func(t *testing.T, r *running) {
		_, err := r.UnaryCall(soon(t), &pb.SimpleRequest{})
		must(t, err)
		if got := <-asked; (got[0] != nil) != (r.form == overFused) || (got[1] != nil) != (r.form == overFused) {
			t.Errorf("set %v, list %v: want errors from fused alone, or less in Unsupported", got[0], got[1])
		}
	})
}
