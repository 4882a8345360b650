// Package rdmaenv turns a gRPC program to RDMA with two lines, and leaves it to an environment variable which device
// that means:
//
//	l, err := rdmaenv.Listen("tcp", addr)                  // was net.Listen
//	cc, err := grpc.NewClient(addr, rdmaenv.WithRDMA(), …) // one option more
//
// The variable is [Variable], a comma list of a device and of how to wait:
//
//	GRPC_RDMA=auto              kernel verbs with an ACTIVE port, else iwarp (the default)
//	GRPC_RDMA=verbs:mlx5_0      kernel verbs on this device; "verbs" is the first ACTIVE one
//	GRPC_RDMA=iwarp             user-space iWARP over TCP, which needs no device
//	GRPC_RDMA=off               TCP, as before
//	GRPC_RDMA=verbs,event       waits by events; bpev (the default) and bp poll busily
//
// A client falls back to TCP where the peer has no RDMA, and a server where this machine lacks what the variable names;
// both log it. A mistake in the variable is an error of Listen; clients of WithRDMA fail when they dial. A listener
// takes RDMA or TCP and not both.
//
// A process has one device, opened at the first use and kept until the process ends. Programs with more than one
// device, or that close it, use package grpcrdma.
package rdmaenv
