// Package carrier makes gRPC clients and servers that differ in nothing but what carries their calls, so that one
// program measures all of them:
//
//	form     what carries the calls
//	tcp      grpc-go on TCP
//	unix     grpc-go on a unix socket: both ends on one machine
//	dropin   grpc-go on grpcrdma's byte stream, over an rdma.Device
//	fused    grpcrdma/fused on that byte stream: no HTTP/2
//	bufconn  grpc-go on grpc/test/bufconn: both ends in one process, and no system
//	         call between them, so that what is left is the price of HTTP/2
//
// A [Carrier] is one side. A server registers generated code on what [Carrier.NewServer] gives and serves the listener
// of [Carrier.Listener]; a client's stubs take the [Conn] of [Carrier.Connect].
//
// A Carrier is also a transports.CallTransport, by which workloads without gRPC call: [Carrier.DialCalls] and
// [Carrier.ListenCalls] carry bytes without a schema as calls of one service, whose codec copies nothing. A neutral
// call with a Timeout sends it as gRPC's deadline. Priorities of calls have no effect: a connection is one stream of
// bytes.
//
// The forms with HTTP/2 take gRPC's buffer sizes, flow-control windows and stream workers ([Options]); the zero value
// is gRPC's own defaults, [Best] what measured best. Message sizes are unlimited in all forms, and nothing else is
// changed.
//
// New takes over the device, unless it fails; Close ends the byte streams and then closes it. A Conn, a Server and a
// listener are the caller's to close before. There is no TLS, and a listener serves every client that reaches it. A
// unix listener is an abstract socket (unix(7)), which Linux has.
package carrier
