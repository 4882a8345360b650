// Package fused carries gRPC calls as frames on a byte stream, without HTTP/2, for
// generated stubs unchanged: [Channel] is a grpc.ClientConnInterface, [Server] a
// grpc.ServiceRegistrar. Over the connections of grpcrdma a unary call is one
// one-sided write in each direction.
//
//	ch, err := fused.NewChannel(func(ctx context.Context) (net.Conn, error) { return n.DialContext(ctx, addr) }, fused.Config{})
//	client := pb.NewGreeterClient(ch)
//
//	srv, err := fused.NewServer(fused.Config{})
//	pb.RegisterGreeterServer(srv, impl)
//	err = srv.Serve(listener)
//
// Any net.Conn does, tls.Conn included: both sides bring their own.
//
// # What is gRPC's
//
// Unary calls and all kinds of streams; header and trailer metadata, binary values
// included; status with details; deadlines, which the server learns; cancellation;
// message size limits; codecs and compressors registered with gRPC; interceptors
// and stats handlers, given in [Config]; per-call credentials; the call options
// Header, Trailer, Peer, OnFinish, UseCompressor, CallContentSubtype,
// ForceCodecV2, WaitForReady, MaxCallRecvMsgSize, MaxCallSendMsgSize, PerRPCCredentials.
//
// # How it waits
//
// A client has no goroutine that reads. The caller that waits for its answer reads
// the connection itself, busily as the connection does; of several, one reads for
// all. So an answer reaches its caller without a hand-over between threads. A
// server's reader runs unary handlers itself while they are quick and nothing else
// has arrived; one that blocks loses the reader's place within some milliseconds,
// and its method gets goroutines from then on.
//
// # Long messages
//
// Over connections of grpcrdma a message of 64 KiB and more lands, and of 512 KiB and
// more where registering memory is a system call: it is written into registered memory
// of the receiver, where the codec reads it. A receiver grants such
// memory for messages as long as it got before, so the first of a connection still
// comes through the ring. Config.Landing bounds that memory.
//
// # When the peer dies
//
// Calls in progress are Unavailable as soon as the connection below knows: at once
// where a process dies over iWARP, else within the probe of grpcrdma's connections
// and the retries of the device. Nothing is sent twice. The next call dials anew,
// at most every 100 ms while that fails: fail-fast calls learn why in between, and
// calls that wait for ready wait. There is no growing back-off.
//
// # Ownership
//
// A Channel owns the connections it dialled and a goroutine for each; Close joins
// them. A Server owns its connections, one goroutine each and one a call; Stop and
// GracefulStop join them. A stream holds at most Config.Window bytes that nobody
// has asked for, the messages that landed, and the message somebody waits for.
//
// # Limitations
//
// Not supported: name resolution, load balancing, service config, retries and
// hedging, channelz, keepalive pings, authority overrides, ForceCodec of the old
// codec interface, grpc.SetSendCompressor, unknown-service handlers, and metadata
// above 48 KiB a frame. Interceptors of clients see a nil *grpc.ClientConn. Options
// this package does not know are ignored, as some of gRPC's cannot be told apart.
// An idle client notices the loss of its connection at its next call: over
// connections of grpcrdma before that is sent, over others the call is Unavailable.
// A peer that takes nothing for 10 s is given up, whatever the deadlines of its calls say.
// Buffers of what is sent are gRPC's own pool: registered ones would save no copy, as
// messages are marshalled on the Go heap.
package fused
