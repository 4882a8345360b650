// Package mesh joins ranks by RDMA connections, one for each pair, and moves vectors
// between them as MPI libraries do: short messages through buffers of its own, long ones
// by a rendezvous that registers the user's memory.
//
// # A rendezvous
//
//	receiver → clear to send: address, key, length       (send)
//	sender   → the bytes, in segments                    (writes)
//	         → a word behind each that it is there       (send)
//
// Where the next step sends what this one receives, a segment goes on as soon as it was added.
//
// Both sides know from the algorithm what comes next, so nobody asks for leave to send.
// A send is delivered behind the writes that were posted before it (RFC 5040 §5.5, IBTA
// 9.6), so the word proves the segment.
//
// # Ownership
//
// A Mesh belongs to one goroutine, and owns its queues, connections and buffers. The
// device is its opener's. Memory that is exchanged is the caller's again when Reduce
// returns.
//
// # Limitations
//
// At most 32 ranks: what a peer may send before it is heard is bounded by that, and
// receives are posted for all of it.
package mesh
