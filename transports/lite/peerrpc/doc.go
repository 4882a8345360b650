// Package peerrpc is what LITE's calls are held against: RPC by a send and a receive each
// way, and RPC by a write each way into rings that the other side polls in memory, as
// FaRM has it (Dragojević et al., NSDI'14, §4). Both are a [transports.CallTransport] over
// any [rdma.Device], so that one run has them beside LITE and gRPC.
//
// A connection has a queue pair and a registration of its own, and memory for the longest
// request and response of each caller, at both ends. Callers of a connection share it. At
// the server one goroutine polls for all connections and calls the handler.
//
//   - [Send]: a request is a send into one of the server's receives, and so is the answer.
//   - [Write]: a request is a write into the next cell of the connection's ring at the
//     server, and the answer a write into the caller's cell. A message ends where its cell
//     ends, and its last byte is the number of the turn: who sees that has all of it
//     (rdma.FeatLastByteLast, without which this form is rdma.ErrNotSupported). No receive
//     is posted and no completion tells of an arrival.
//
// # Ownership
//
// A [Stack] owns its device. A server owns one goroutine that accepts and one that polls.
//
// # Limitations
//
// Unary calls and streams of exchanges only; who waits polls, at both ends. The handler
// runs where connections are polled: one that takes long holds up all. Requests of a
// connection are answered in their order. An answer that came too late is waited for by
// the next call of its caller.
package peerrpc
