package grpcrdma

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// service is a server of gRPC's own test protocol: it answers what it is asked.
type service struct {
	pb.UnimplementedTestServiceServer
	begun, ended atomic.Int32 // calls that wait for the end of their context
}

// block is the response size that asks a call to wait for the end of its context.
const block = -1

func (s *service) EmptyCall(ctx context.Context, in *pb.Empty) (*pb.Empty, error) {
	if md, ok := metadata.FromIncomingContext(ctx); ok {
		if v := md.Get("echo"); len(v) > 0 {
			grpc.SetHeader(ctx, metadata.Pairs("echo-header", v[0]))
		}
		if v := md.Get("echo-bin"); len(v) > 0 {
			grpc.SetTrailer(ctx, metadata.Pairs("echo-trailer-bin", v[0]))
		}
	}
	return in, nil
}

func (s *service) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if st := in.GetResponseStatus(); st != nil && st.Code != 0 {
		return nil, status.Error(codes.Code(st.Code), st.Message)
	}
	if in.ResponseSize == block {
		s.begun.Add(1)
		<-ctx.Done()
		s.ended.Add(1)
		return nil, ctx.Err()
	}
	body := make([]byte, in.ResponseSize)
	for i := range body {
		body[i] = byte(i) ^ byte(len(in.GetPayload().GetBody()))
	}
	return &pb.SimpleResponse{Payload: &pb.Payload{Body: body}}, nil
}

func (s *service) StreamingOutputCall(in *pb.StreamingOutputCallRequest, out grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	for _, p := range in.ResponseParameters {
		if err := out.Send(&pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: make([]byte, p.Size)}}); err != nil {
			return err
		}
	}
	return nil
}

func (s *service) StreamingInputCall(in grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	sum := 0
	for {
		m, err := in.Recv()
		if err == io.EOF {
			return in.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: int32(sum)})
		}
		if err != nil {
			return err
		}
		sum += len(m.GetPayload().GetBody())
	}
}

func (s *service) FullDuplexCall(both grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	for {
		m, err := both.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if st := m.GetResponseStatus(); st != nil && st.Code != 0 {
			return status.Error(codes.Code(st.Code), st.Message)
		}
		if err := both.Send(&pb.StreamingOutputCallResponse{Payload: m.Payload}); err != nil {
			return err
		}
	}
}

// rpc is a server and a client over one pair.
type rpc struct {
	*pair
	svc    *service
	server *grpc.Server
	cc     *grpc.ClientConn
	client pb.TestServiceClient
}

// newRPC serves and dials with the given options; without credentials in dial the
// connection is plain.
func newRPC(t testing.TB, p provider, cfg Config, serve []grpc.ServerOption, dial ...grpc.DialOption) *rpc {
	t.Helper()
	r := &rpc{pair: newPair(t, p, cfg, cfg), svc: &service{}}
	r.server = grpc.NewServer(serve...)
	pb.RegisterTestServiceServer(r.server, r.svc)
	over := make(chan error, 1)
	go func() { over <- r.server.Serve(r.l) }()
	if len(dial) == 0 {
		dial = append(dial, plain())
	}
	r.cc = r.newClient("passthrough:///"+r.l.Addr().String(), dial...)
	r.client = pb.NewTestServiceClient(r.cc)
	t.Cleanup(func() {
		r.cc.Close()
		r.server.Stop()
		must(t, <-over)
	})
	return r
}

func (r *rpc) newClient(target string, dial ...grpc.DialOption) *grpc.ClientConn {
	r.t.Helper()
	cc, err := grpc.NewClient(target, append([]grpc.DialOption{WithRDMA(r.a)}, dial...)...)
	must(r.t, err)
	return cc
}

func plain() grpc.DialOption { return grpc.WithTransportCredentials(insecure.NewCredentials()) }

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// within fails the test if f takes longer than the bound on a hang.
func within(t testing.TB, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(testTimeout):
		t.Fatalf("%s hangs", what)
	}
}
