// Package carrier makes gRPC clients and servers that differ only in the [Form] that carries their calls, so that one
// program measures all of them.
//
// A [Carrier] is one side. A server registers generated code on [Carrier.NewServer] and serves [Carrier.Listener]; a
// client's stubs take the [Conn] of [Carrier.Connect]. As a transports.CallTransport it carries bytes without a schema
// as calls of one service. Priorities of calls have no effect: a connection is one stream of bytes.
//
// Message sizes are unlimited. There is no TLS, and a listener serves every client that reaches it. A Conn, a Server
// and a listener are the caller's to close before the Carrier.
package carrier
