// Package rpctest is gRPC's test service, and the cases that every way of carrying gRPC must pass.
package rpctest

import (
	"context"
	"io"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/interop"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Service is a server of gRPC's own test protocol: it answers what it is asked.
type Service struct {
	pb.UnimplementedTestServiceServer
	Begun, Ended atomic.Int32 // calls that wait for the end of their context

	once   sync.Once
	begins chan struct{} // has room for one; see changed
}

// AwaitBegun returns once n calls wait for the end of their context. One goroutine at a time may call it.
func (s *Service) AwaitBegun(n int32) {
	for s.Begun.Load() < n {
		<-s.changed()
	}
}

func (s *Service) changed() chan struct{} {
	s.once.Do(func() { s.begins = make(chan struct{}, 1) })
	return s.begins
}

func (s *Service) begin() {
	s.Begun.Add(1)
	select {
	case s.changed() <- struct{}{}:
	default:
	}
}

// Waiting is the two counts, as Target wants them.
func (s *Service) Waiting() (begun, ended int32) { return s.Begun.Load(), s.Ended.Load() }

// Block is the response size that asks a call to wait for the end of its context.
const Block = -1

func (s *Service) EmptyCall(ctx context.Context, in *pb.Empty) (*pb.Empty, error) {
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

func (s *Service) UnaryCall(ctx context.Context, in *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if st := in.GetResponseStatus(); st != nil && st.Code != 0 {
		return nil, status.Error(codes.Code(st.Code), st.Message)
	}
	if in.ResponseSize == Block {
		s.begin()
		<-ctx.Done()
		s.Ended.Add(1)
		return nil, ctx.Err()
	}
	body := make([]byte, in.ResponseSize)
	for i := range body {
		body[i] = byte(i) ^ byte(len(in.GetPayload().GetBody()))
	}
	return &pb.SimpleResponse{Payload: &pb.Payload{Body: body}}, nil
}

// stock answers what needs nothing of this package's own.
var stock = interop.NewTestServer()

func (s *Service) StreamingOutputCall(in *pb.StreamingOutputCallRequest,
	out grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	return stock.StreamingOutputCall(in, out)
}

func (s *Service) StreamingInputCall(in grpc.ClientStreamingServer[pb.StreamingInputCallRequest,
	pb.StreamingInputCallResponse]) error {
	return stock.StreamingInputCall(in)
}

func (s *Service) FullDuplexCall(both grpc.BidiStreamingServer[pb.StreamingOutputCallRequest,
	pb.StreamingOutputCallResponse]) error {
	for {
		m, err := both.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if len(m.ResponseParameters) > 0 {
			return s.flood(both, int(m.ResponseParameters[0].Size))
		}
		if st := m.GetResponseStatus(); st != nil && st.Code != 0 {
			return status.Error(codes.Code(st.Code), st.Message)
		}
		if err := both.Send(&pb.StreamingOutputCallResponse{Payload: m.Payload}); err != nil {
			return err
		}
	}
}

func (s *Service) flood(to grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse],
	size int) error {
	s.begin()
	defer s.Ended.Add(1)
	m := &pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: make([]byte, size)}}
	for {
		if err := to.Send(m); err != nil {
			return err
		}
	}
}
