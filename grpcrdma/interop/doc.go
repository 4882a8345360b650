// Package interop is the conformance suite of gRPC over RDMA: the interoperability cases of grpc-go itself, and what
// else gRPC's users rely on, run unchanged over every form that carries calls.
//
// The cases of google.golang.org/grpc/interop end their process when they fail. So every case has a process of its own,
// which [Run] starts and judges: it ends well, or its last words are what went wrong. The server is one more process,
// shared by the cases, unless the device cannot be left ("mem"): then each case brings a server of its own in its own
// process. Cases, selection, ledger, reports and their forms are those of transports/conform.
//
// The package opens no device. Its caller starts the children, by [Children], and lets them call [Serve], [RunCase] or
// [Linger] with a grpcrdma.Net of their own. Run owns the processes it starts and joins them.
//
// # Groups
//
//	interop   grpc-go's cases, under the names of gRPC's description of them
//	call      what every way of carrying calls passes (package rpctest)
//	svc       standard services: health, reflection
//	tls       TLS and mutual TLS
//	chan      of a connection: keepalive, interceptors, stats handlers, targets, size
//	peer      the sudden death of a process (kill -9)
//
// gRPC describes cases that grpc-go has no function for: cacheable_unary, client_compressed_unary,
// server_compressed_unary, client_compressed_streaming, server_compressed_streaming. call/compression covers gzip
// instead. Cases that need Google's cloud are listed as unsupported, as is what a form documents that it lacks.
package interop
