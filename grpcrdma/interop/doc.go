// Package interop is the conformance suite of gRPC over RDMA: the cases of google.golang.org/grpc/interop, and what
// else gRPC's users rely on, run over every form that carries calls.
//
//	interop   grpc-go's cases, under the names of gRPC's description of them
//	call      what every way of carrying calls passes (package rpctest)
//	svc       standard services: health, reflection
//	tls       TLS and mutual TLS
//	chan      of a connection: keepalive, interceptors, stats handlers, targets, size
//	peer      the sudden death of a process (kill -9)
//
// grpc-go's cases end their process, so [Run] starts one for each by [Children], and one of a server unless client and
// server must share a process. Their roles are [Serve], [RunCase] and [Linger].
package interop
