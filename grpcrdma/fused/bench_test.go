package fused

import (
	"context"
	"testing"

	pb "google.golang.org/grpc/interop/grpc_testing"
)

// BenchmarkUnary is a call inside one process, over the memory device and over
// loopback TCP: what this package itself costs. The comparison with gRPC over a
// network, in two processes, is in package grpcrdma.
func BenchmarkUnary(b *testing.B) {
	for _, a := range []arm{arms[0], arms[3]} {
		b.Run(a.name, func(b *testing.B) {
			r := newRPC(b, a, Config{}, Config{})
			in := &pb.SimpleRequest{ResponseSize: 64, Payload: &pb.Payload{Body: make([]byte, 64)}}
			_, err := r.Client.UnaryCall(soon(b), in)
			must(b, err)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Client.UnaryCall(context.Background(), in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
