// Package peerrpc is what LITE's calls are compared with: RPC by a send and a receive each
// way, and RPC by a write each way into rings that the other side polls in memory, as
// FaRM has it (Dragojević et al., NSDI'14, §4). Both are a [transports.CallTransport] over
// any [rdma.Device].
//
// A connection has a queue pair and a registration of its own, and memory for the longest
// request and response of each caller, at both ends. Callers of a connection share it. At
// the server one goroutine polls for all connections and runs the handler; requests of a
// connection are answered in their order. A caller waits for a late answer with its next call.
//
//   - [Send]: a request is a send into one of the server's receives, and so is the answer.
//   - [Write]: a request is a write into the next cell of the connection's ring at the
//     server, and the answer a write into the caller's cell. A message ends where its cell
//     ends, and its last byte is the number of the turn, which is placed last
//     (rdma.FeatLastByteLast, without which this form is rdma.ErrNotSupported). There is
//     neither a receive nor a completion for an arrival.
package peerrpc
