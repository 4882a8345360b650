// Package rdmaenv brings a gRPC program to RDMA with two lines:
//
//	l, err := rdmaenv.Listen("tcp", addr)                  // was net.Listen
//	cc, err := grpc.NewClient(addr, rdmaenv.WithRDMA(), …) // one option more
//
// The variable GRPC_RDMA, as in GRPC_RDMA=verbs:mlx5_0,event, names a device: verbs, verbs:NAME, iwarp, off (TCP), or
// auto (an ACTIVE port of verbs, else iwarp; the default). It also names how to wait: bpev (the default), bp, event.
//
// A client falls back to TCP where the peer has no RDMA, and a server where this machine lacks the device; both log it.
// A mistake in the variable is an error of Listen and of every dial. A listener takes RDMA or TCP and not both. A
// process has one device, opened at the first use and never closed; package grpcrdma has no such limit.
package rdmaenv
