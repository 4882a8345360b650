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
