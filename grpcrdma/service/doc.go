// Package service does the RDMA of a program in a process of its own, which the program reaches through queues in
// shared memory, as mRPC does (NSDI'23):
//
//	program ── shared queues ── service ── RDMA ── service ── shared queues ── program
//
// [Start] runs a command whose process calls [Run]; they talk over a socket that the process inherits. The service
// moves bytes between the program's net.Conns (shmqueue) and connections of grpcrdma, with one copy each way.
//
// A [Client] owns its process, which ends with the socket. Unlike mRPC, the program marshals the messages. There are no
// sinks for long messages. Linux only.
package service
