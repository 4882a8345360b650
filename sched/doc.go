// Package sched is a tier over any rdma.Device that schedules the work requests of one connection by priority, after
// sRDMA (Wang, Wang and Li, APNet'23, doi 10.1145/3600061.3600082): large requests are cut into slices, slices are
// posted by rdma.SendWR.Priority, and every request completes once. Encoding, slices, window and starvation rule are
// our own.
//
// # Order
//
// Of one priority all is first in, first out, on the wire and in completions: data of a write is in place before a send
// posted behind it is delivered. A more urgent request overtakes what was posted before it and was not yet handed to
// the device below; who needs a send behind the data of a write gives both the same priority. Fence, local invalidate
// and send with invalidate never overtake. A completion says that every unsignalled request posted before has ended
// (IBTA 10.7.3.1), and is held until it is true. The first slice that fails completes its request; what waited is
// flushed behind what was posted, in order. Disconnect posts what waits while its context lasts; Drain ends what was
// cut first.
//
// # Slices
//
// Writes and reads are cut, the tail of a read first; inline requests and atomics are not, and writes with immediate
// only with [LastImmediates]. Sends are refused with [RefuseSends], and cut with [CutSends] where both tiers agreed by
// 32 bytes behind the private data: slices go into a ring of Config.Room bytes at the peer, and a send of the first
// slice takes the oldest receive when the message ends, so each receive has to be long enough for any message. What
// goes whole: a send longer than the ring or than a posted receive, one that finds the ring taken by less urgent ones,
// and all where an end has a shared receive queue or no remote writes. A receive that proves too short ends the
// connection.
//
// # Window
//
// The window bounds what was posted below and has not reached the peer's memory, for each class apart: an urgent
// request waits for one window of each less urgent class at most. Where completions are local (iWARP) a read of zero
// bytes behind a quarter of a window proves arrival; without reads, or rdma.FeatEmptyRead, what waits in sockets is not
// bounded. It follows the bandwidth-delay product, is wide while nothing urgent has come for 100 ms, and loose on a
// path of 1 GB/s: the first urgent request then waits for what lies in sockets. [ScopeDevice] and [ScopePeer] share one
// among QPs.
//
// Posting and polling move what waits; within 10 ms one goroutine of the device does, which Close joins. A mutex guards
// a completion queue and the queue pairs that send into it. Nothing is allocated per request.
package sched
