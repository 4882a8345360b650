// Package service does the RDMA of a program in a process of its own, which the program reaches through queues in
// shared memory: RPC as a managed service, the form that mRPC has (NSDI'23) and that RR-Compound is compared with. What
// it costs is another process between every call and the wire; what it gives is one place that owns the device.
//
//	program ── shared queues ── service ── RDMA ── service ── shared queues ── program
//
// [Start] runs a command whose process calls [Run]; they talk over a socket that the process inherits. Dial and Listen
// give the program net.Conns (shmqueue) whose bytes the service moves to and from connections of grpcrdma.
//
// A [Client] owns its process: Close ends and waits for it. The process ends by itself when the socket does, and with
// it all connections. The program marshals messages, where mRPC's service does; the service copies every byte once
// between queue and ring, each way, and has no sinks for long messages. Linux only, as shmqueue.
package service
