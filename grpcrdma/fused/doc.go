// Package fused carries gRPC calls as frames on a byte stream, without HTTP/2, for generated stubs unchanged: [Channel]
// is a grpc.ClientConnInterface, [Server] a grpc.ServiceRegistrar. Over the connections of grpcrdma a unary call is one
// one-sided write in each direction. [NewChannel] makes a channel of what dials one server, [NewClient] one to a
// target, under grpc-go's own resolvers and load balancing policies.
//
// Any net.Conn does. Config.Creds are gRPC's credentials, as of grpc.NewServer and grpc.NewClient; a connection that is
// a tls.Conn brings its own. Either way handlers and callers find in their peer.Peer who was proven to be at the other
// end.
//
// # What is gRPC's
//
// Unary calls and all kinds of streams; header and trailer metadata under gRPC's rules, binary values included; status
// with details; deadlines, which the server learns; cancellation; message size limits; codecs and compressors
// registered with gRPC; interceptors and stats handlers, given in [Config]; transport credentials, and those of a call;
// transparent retry; keepalive pings, the idleness and age of connections; handlers of unknown services; of NewClient
// resolvers, load balancing policies with what they learn of calls, service config with retries, their throttling,
// timeouts, limits and health checks; the call options Header, Trailer, Peer, OnFinish, UseCompressor,
// CallContentSubtype, CallAuthority, ForceCodec, ForceCodecV2, WaitForReady, MaxCallRecvMsgSize, MaxCallSendMsgSize,
// PerRPCCredentials. Tests run one body on this package and on grpc-go over TCP, and ask both for the same codes,
// metadata and events.
//
// [Unsupported] is what is missing, and why. Streams are made again under a service config alone: without one their
// messages are not kept.
//
// # How it waits
//
// A client has no goroutine that reads. The caller that waits for its answer reads the connection itself, busily as the
// connection does; of several, one reads for all. So an answer reaches its caller without a hand-over between threads.
// A server's reader runs unary handlers itself while they are quick and nothing else has arrived; one that blocks loses
// the reader's place within some milliseconds, and its method gets goroutines from then on.
//
// # Long messages
//
// Over connections of grpcrdma a message of 64 KiB and more, and of 512 KiB and more where registering memory is a
// system call, is written into registered memory of the receiver, a sink, where the codec reads it. MPI and UCX call
// this rendezvous; here the sink is advertised in advance. A receiver grants sinks for messages as long as it received
// before, so the first of a connection still comes through the ring. Config.Sinks bounds that memory.
//
// # When the peer dies
//
// Calls in progress are Unavailable as soon as the connection below fails: at once where a process dies over iWARP,
// else within the probe of grpcrdma's connections and the retries of the device. Nothing that may have reached the peer
// is sent twice: a call of which nothing left this side, or that came behind the last one of a server that stops in
// order, goes over the next connection by itself. Of a stream that is its opening alone. The next call dials anew, at
// most every 100 ms while that fails: fail-fast calls fail in between, and calls that wait for ready wait. There is no
// growing back-off but that of NewClient, which is gRPC's (Config.Backoff).
//
// # Limits
//
// A stream holds at most Config.Window bytes that were not read, the messages in sinks, and the message that is waited
// for. An idle client detects the loss of its connection at its next call: over connections of grpcrdma before that is
// sent, over others the call is Unavailable. A peer that takes nothing for Config.StallLimit is disconnected, whatever
// the deadlines of its calls. Messages are marshalled on the Go heap, into gRPC's own buffers.
package fused

// Unsupported is what of gRPC's a fused channel or server does not have, and why: what grpc-go's exported API keeps
// others from. This is the only list; package documentation and `rdmaperf conform` point here.
var Unsupported = map[string]string{
	"grpc.SetSendCompressor, grpc.ClientSupportedCompressors": "grpc-go asks the context for a stream of its " +
		"internal transport package, which nobody else can make; fused answers are compressed as their requests are",
	"channelz": "its registry is internal to grpc-go",
	"*grpc.ClientConn": "a fused channel is none, as that is a struct of grpc-go's: " +
		"interceptors of clients see nil, and functions that want one cannot be used",
	"config selectors of resolvers (xDS)": "grpc-go reads them from an internal package",
	"metrics of resolvers and policies":   "grpc-go's registry of their recorders is internal",
	"orca.CallMetricsServerOption": "its interceptors hide in an option that grpc.Server alone can read; " +
		"load reports that a handler puts in its trailer reach policies",
	"keepalive.EnforcementPolicy": "not needed: a response to a ping is 12 bytes, one at a time",
	"idle mode of a channel": "not needed: a channel without calls has no goroutine that runs; " +
		"servers end idle connections (MaxConnectionIdle)",
	"grpc.CallCustomCodec":                    "deprecated by grpc-go",
	"call options this package does not know": "ignored, as some of gRPC's cannot be told apart",
}
