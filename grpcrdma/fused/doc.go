// Package fused carries gRPC calls as frames on a byte stream, without HTTP/2, for generated stubs unchanged: [Channel]
// is a grpc.ClientConnInterface, [Server] a grpc.ServiceRegistrar. Over the connections of grpcrdma a unary call is one
// one-sided write in each direction; any other net.Conn does, too. [Unsupported] lists what of gRPC is missing.
//
// A client has no goroutine that reads: of the callers that wait one reads, busily as the connection does. A server's
// reader runs quick unary handlers itself. Long messages go into registered memory of the receiver (Config.Sinks).
//
// When the connection fails its calls are Unavailable at once, and the next call dials anew, at most every 100 ms while
// that fails ([NewClient]: Config.Backoff). Calls that cannot have reached the peer are made again by themselves,
// others under a service config alone. An idle client detects the loss at its next call: over grpcrdma before that is
// sent. A stream holds at most Config.Window bytes that were not read, the messages in sinks, and the one that is
// waited for.
package fused

// Unsupported is what of gRPC's API is missing here, and why. `rdmaperf conform` has its reasons from this list.
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
