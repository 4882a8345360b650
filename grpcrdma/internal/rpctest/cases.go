package rpctest

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// T is a *testing.T, or what replaces one where no test runs. Fatalf ends the calling goroutine.
type T interface {
	Helper()
	Cleanup(f func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Target is a client and the service it reaches.
type Target struct {
	Client  pb.TestServiceClient
	Network string // of the addresses that calls report
	// Waiting is how many calls have begun to wait at the service for the end of their context, and how many of them
	// ended.
	Waiting func() (begun, ended int32)
	Timeout time.Duration // of whatever should be quick; 0 means 30 s
}

// Case is one thing that gRPC does without special set-up.
type Case struct {
	Name, Clause, Requirement string
	Run                       func(T, Target)
}

// Cases is all of them; they may share a connection.
var Cases = []Case{
	{"unary", "gRPC core concepts, unary RPC",
		"Calls of 0 to 80000 bytes return what they asked for.", func(t T, x Target) { Unary(t, x) }},
	{"metadata", "gRPC guide, metadata", "A header and a binary trailer come back.", headers},
	{"status", "gRPC guide, status codes",
		"Code and text of a status reach the client; an unknown method is UNIMPLEMENTED.", statuses},
	{"server streaming", "gRPC core concepts, server streaming RPC",
		"Fifty messages of 0 to 49000 bytes arrive in order, and then the end.", serverStreaming},
	{"client streaming", "gRPC core concepts, client streaming RPC",
		"The server sees every byte of fifty messages.", clientStreaming},
	{"bidirectional", "gRPC core concepts, bidirectional streaming RPC",
		"A hundred messages come back one by one, unchanged.", Bidirectional},
	{"deadline", "gRPC guide, deadlines",
		"A call past its deadline is DEADLINE_EXCEEDED, and ends at the server, too.", deadline},
	{"cancel", "gRPC guide, cancellation", "A cancelled call is CANCELLED, and ends at the server, too.", cancel},
	{"compression", "gRPC guide, compression", "Calls compressed with gzip return what they asked for.",
		func(t T, x Target) { Unary(t, x, grpc.UseCompressor(gzip.Name)) }},
	{"far above the ring", "gRPC guide, flow control",
		"A message of 3 MiB crosses a ring of 256 KiB in both directions.", large},
	{"concurrent calls", "gRPC core concepts, channels",
		"Sixteen callers share a connection, and each gets its own answers.", concurrent},
	{"unread stream", "gRPC guide, flow control",
		"A stream that nobody reads holds up no other call, and loses nothing.", unread},
	{"abandoned stream", "gRPC guide, cancellation",
		"A stream given up in the middle ends at the server without another call.", abandoned},
}

const testTimeout = 30 * time.Second

// Must ends the test with an error.
func Must(t T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// Soon is a context for what should be quick.
func Soon(t T) context.Context { return Target{}.soon(t) }

func (x Target) limit() time.Duration { return cmp.Or(x.Timeout, testTimeout) }

func (x Target) soon(t T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), x.limit())
	t.Cleanup(cancel)
	return ctx
}

// Within fails the test when f hangs.
func Within(t T, what string, f func()) {
	t.Helper()
	Target{}.within(t, what, f)
}

func (x Target) within(t T, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(x.limit()):
		t.Fatalf("%s hangs", what)
	}
}

// Pattern is n bytes that tell their place in a stream.
func Pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ byte(i>>8) ^ byte(i>>16) ^ seed
	}
	return b
}

// Unary makes calls of several sizes.
func Unary(t T, x Target, opts ...grpc.CallOption) {
	for _, size := range []int{0, 1, 64, 4000, 40_000} {
		var from peer.Peer
		resp, err := x.Client.UnaryCall(x.soon(t), &pb.SimpleRequest{ResponseSize: int32(size),
			Payload: &pb.Payload{Body: make([]byte, 2*size)}}, append(opts, grpc.Peer(&from))...)
		Must(t, err)
		body := resp.GetPayload().GetBody()
		for i := range body {
			if body[i] != byte(i)^byte(2*size) {
				t.Fatalf("byte %d of %d is %#x", i, size, body[i])
			}
		}
		if len(body) != size || from.Addr.Network() != x.Network {
			t.Errorf("%d bytes for %d, over %v", len(body), size, from.Addr)
		}
	}
}

func headers(t T, x Target) {
	binary := string([]byte{0, 1, 255, 'x'})
	ctx := metadata.AppendToOutgoingContext(x.soon(t), "echo", "hello", "echo-bin", binary)
	var header, trailer metadata.MD
	_, err := x.Client.EmptyCall(ctx, &pb.Empty{}, grpc.Header(&header), grpc.Trailer(&trailer))
	Must(t, err)
	if h, b := header.Get("echo-header"), trailer.Get("echo-trailer-bin"); len(h) != 1 || h[0] != "hello" ||
		len(b) != 1 || b[0] != binary {
		t.Errorf("header %v, trailer %q", h, b)
	}
}

func statuses(t T, x Target) {
	const text = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
	_, err := x.Client.UnaryCall(x.soon(t),
		&pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: int32(codes.DataLoss), Message: text}})
	if s := status.Convert(err); s.Code() != codes.DataLoss || s.Message() != text {
		t.Errorf("%v", err)
	}
	if _, err := x.Client.UnimplementedCall(x.soon(t), &pb.Empty{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("%v", err)
	}
}

func serverStreaming(t T, x Target) {
	in := &pb.StreamingOutputCallRequest{}
	for i := range 50 {
		in.ResponseParameters = append(in.ResponseParameters, &pb.ResponseParameters{Size: int32(i * 1000)})
	}
	s, err := x.Client.StreamingOutputCall(x.soon(t), in)
	Must(t, err)
	for i := range 50 {
		m, err := s.Recv()
		Must(t, err)
		if n := len(m.GetPayload().GetBody()); n != i*1000 {
			t.Fatalf("message %d has %d bytes", i, n)
		}
	}
	if _, err := s.Recv(); err != io.EOF {
		t.Errorf("behind the last message: %v", err)
	}
}

func clientStreaming(t T, x Target) {
	s, err := x.Client.StreamingInputCall(x.soon(t))
	Must(t, err)
	for i := range 50 {
		Must(t, s.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: make([]byte, i*1000)}}))
	}
	sum, err := s.CloseAndRecv()
	Must(t, err)
	if sum.AggregatedPayloadSize != 49*50/2*1000 {
		t.Errorf("%d bytes arrived", sum.AggregatedPayloadSize)
	}
}

// Bidirectional plays ping-pong on one stream.
func Bidirectional(t T, x Target) {
	s, err := x.Client.FullDuplexCall(x.soon(t))
	Must(t, err)
	for i := range 100 {
		want := Pattern(i*50, byte(i))
		Must(t, s.Send(&pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: want}}))
		m, err := s.Recv()
		Must(t, err)
		if !bytes.Equal(m.GetPayload().GetBody(), want) {
			t.Fatalf("message %d differs", i)
		}
	}
	Must(t, s.CloseSend())
	if _, err := s.Recv(); err != io.EOF {
		t.Errorf("behind the end: %v", err)
	}
}

func deadline(t T, x Target) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := x.Client.UnaryCall(ctx,
		&pb.SimpleRequest{ResponseSize: Block}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	x.allEnded(t)
}

// allEnded waits until the server has seen the end of every call that waits for it.
func (x Target) allEnded(t T) {
	t.Helper()
	x.within(t, "the server's side of an ended call", func() {
		for begun, ended := x.Waiting(); ended != begun; begun, ended = x.Waiting() {
			time.Sleep(time.Millisecond)
		}
	})
}

func cancel(t T, x Target) {
	ctx, cancel := context.WithCancel(x.soon(t))
	before, _ := x.Waiting()
	go func() {
		for begun := before; ctx.Err() == nil && begun == before; begun, _ = x.Waiting() {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	if _, err := x.Client.UnaryCall(ctx, &pb.SimpleRequest{ResponseSize: Block}); status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
	x.allEnded(t)
}

func large(t T, x Target) {
	const size = 3 << 20 // below gRPC's own limit of 4 MiB, twelve default rings
	resp, err := x.Client.UnaryCall(x.soon(t), &pb.SimpleRequest{ResponseSize: size,
		Payload: &pb.Payload{Body: make([]byte, size)}})
	Must(t, err)
	if n := len(resp.GetPayload().GetBody()); n != size {
		t.Errorf("%d bytes", n)
	}
}

func concurrent(t T, x Target) {
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 20 {
				resp, err := x.Client.UnaryCall(x.soon(t), &pb.SimpleRequest{ResponseSize: int32(i * 300)})
				if err != nil || len(resp.GetPayload().GetBody()) != i*300 {
					t.Errorf("call of %d bytes: %v", i*300, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func unread(t T, x Target) {
	in := &pb.StreamingOutputCallRequest{}
	for range 60 {
		in.ResponseParameters = append(in.ResponseParameters, &pb.ResponseParameters{Size: 50_000})
	}
	s, err := x.Client.StreamingOutputCall(x.soon(t), in)
	Must(t, err)
	for range 20 {
		_, err := x.Client.EmptyCall(x.soon(t), &pb.Empty{})
		Must(t, err)
	}
	for n := 0; ; n++ {
		m, err := s.Recv()
		if err == io.EOF && n == 60 {
			return
		}
		Must(t, err)
		if len(m.GetPayload().GetBody()) != 50_000 {
			t.Fatalf("message %d has %d bytes", n, len(m.GetPayload().GetBody()))
		}
	}
}

func abandoned(t T, x Target) {
	ctx, cancel := context.WithCancel(x.soon(t))
	s, err := x.Client.FullDuplexCall(ctx)
	Must(t, err)
	_, before := x.Waiting()
	Must(t, s.Send(&pb.StreamingOutputCallRequest{ResponseParameters: []*pb.ResponseParameters{{Size: 60_000}}}))
	_, err = s.Recv()
	Must(t, err)
	cancel()
	x.within(t, "the server's side of an abandoned stream", func() {
		for ended := before; ended == before; _, ended = x.Waiting() {
			time.Sleep(time.Millisecond)
		}
	})
	for err = nil; err == nil; { // what had arrived may still be read
		_, err = s.Recv()
	}
	if status.Code(err) != codes.Canceled {
		t.Errorf("%v", err)
	}
}
