// Package sched is a tier over any rdma.Device that schedules the work requests of one connection by priority, after
// sRDMA (Wang, Wang and Li, APNet'23, doi 10.1145/3600061.3600082). The application states a priority in
// rdma.SendWR.Priority and changes nothing else. Large requests are cut into slices, slices are posted by priority, and
// every request completes once.
//
// How sRDMA encodes priorities, its slice size, its window and its rule against
// starvation are not public: those here are this package's own.
//
// # What goes where
//
//	PostSend → nothing waits, and it is no longer than a slice: straight to the
//	           device below, in the caller's own slice
//	         → else: a copy waits in its class until the policy picks it and the
//	           window has room; it is posted in slices
//	Poll     → completions are translated where the device below put them, and
//	           what they make room for is posted
//	PostRecv, registrations, events → the device below
//
// Priority 0 is the least urgent and 7 the most; more is refused with rdma.ErrInvalid. Without anything more urgent,
// nothing is reordered. With [FIFO] everything but the priorities is left to the device below.
//
// # Semantics
//
// Same priority: first in, first out, on the wire and in completions. Data of a write is therefore in place before a
// send of the same priority posted behind it is delivered.
//
// Across priorities: a more urgent request overtakes what was posted before it and has not been handed to the device
// below. A send can be delivered before data that an earlier, less urgent write carries: that is the point of the tier,
// and who needs both in order gives them the same priority. Completions come in the order in which requests end.
//
// Fence, local invalidate, send with invalidate: they never overtake, because
// what they wait for, or what could still use the key, stands before them.
//
// Write and read are cut; atomics, inline requests and sends are not. The tail of a read is fetched first, so that a
// range that leaves the peer's registration is refused before anything of it is placed. A write with immediate is left
// whole, or with [LastImmediates] is cut with the immediate on the last slice. A send longer than a slice is left
// whole, or with [RefuseSends] refused, or with [CutSends] cut where both ends agreed to, as follows. The stack name
// tells both choices, and [Tally] what became of long sends.
//
// # Sends in slices
//
// One send takes one receive, and the peer's device knows nothing of slices. Two tiers with [CutSends] therefore agree
// when they connect, by 32 bytes behind the application's private data (Caps.MaxPrivate is less by so much). A peer
// without a tier, or with the policy fifo, finds them behind what the application sent, and nothing else changes. The
// slices are written into a ring of Config.Room bytes at the peer, and a send of the first slice follows, which takes
// the receive. Its completion at the peer's tier is that of the whole message: the rest is copied out of the ring.
//
// Receives: a message takes the oldest receive when it ends, not when it begins. An urgent send that overtakes takes an
// older receive than what it overtook, so each receive has to be long enough for any message. Receive completions keep
// the order of the receives. Immediate, invalidation and solicited event come once, with the end of the message.
//
// What goes whole: an inline send, one that is longer than the ring and a slice, one that is longer than a receive that
// is posted (so that the device refuses it, with the status at both ends that it has), an urgent one that finds the
// ring taken by less urgent ones, and every send where no agreement was made: the peer has no tier or does not cut, or
// one of the ends has a shared receive queue or no right to remote writes. With [CutOrRefuseSends], what never could be
// cut is refused.
//
// Waiting: a send that finds the ring taken by sends as urgent as itself waits until the peer has taken one, at most
// about 10 ms after it arrived there if the application does not poll.
//
// Errors: a slice that fails is the send's error, and no receive is taken. If the receive turns out too short, because
// it was posted after the send was cut, or its elements are bad beyond the first slice, then the receive fails with the
// status that it would have had, and the connection ends; but the sender may have had a success, and is notified of it
// as of any connection that ends. A peer that breaks the rules of the ring loses the connection; it can write nothing
// else.
//
// Unsignalled requests: a completion says that every unsignalled request posted before it has ended too (IBTA
// 10.7.3.1), whatever their priorities. The completion of a request that overtook such a one is held until that has
// ended. Urgent requests beside unsignalled bulk arrive early and complete late.
//
// Queue depth: a request takes one place from its post until its completion, or a later one, is polled, however many
// slices it has. A full queue answers rdma.ErrQueueFull. Places that slices and marks need are the tier's own.
//
// Errors: the first slice that fails completes the request with its status. What was posted below completes as the
// device says, what waited completes flushed behind it, in the order of the posts, each once. If a mark fails first,
// the next request has its status. Close and Fail flush in the same way. Disconnect posts what waits, as long as its
// context lasts.
//
// Outstanding reads: no more reads and atomics than ORD are posted below, so that
// none of them blocks what comes behind it in the device's queue.
//
// Drain: a request that was cut has begun and ends before the queue pair is drained; what has not begun is held.
//
// # The window
//
// What the device below has taken cannot be reordered. The window bounds it in bytes until they have reached the peer's
// memory, for each class apart: bulk that fills its window does not keep an urgent request out. An urgent request waits
// for one window of every less urgent class at most.
//
// Where a completion is an acknowledgement, it proves that. Where it is local (iWARP), bytes go on waiting in the
// socket, on the wire and in the peer's receive buffer, which the kernel here cannot see into. There the tier posts a
// read of zero bytes behind every quarter of a window. Its answer proves that the peer's device has taken everything
// before it (RFC 5040 §5.5 (12)); the peer needs no tier for that, and no key is involved (RFC 5040 §4.4). A connection
// with ORD 0 has no reads, and some devices mishandle empty ones (no rdma.FeatEmptyRead): there the window counts local
// completions, and what waits in sockets is not bounded.
//
// The automatic window is twice the measured bandwidth-delay product, from 64 KiB to 64 MiB. Where completions are
// local it is at least what is sent in 200 us, from 240 KiB to 720 KiB, and slices are a multiple of 60 KiB. The delay
// is measured about once in 256 windows, by letting the window run empty and sending one slice alone. The automatic
// slice is a quarter of the window. While no urgent request has come for 100 ms, an automatic window is as wide as what
// was sent in 48 ms, to 4 MiB, and the delay is not measured, because short slices and many marks cost a software stack
// a good part of its rate: the first urgent request after that waits so much longer. Config.Steady keeps it narrow, and
// Config.Adaptive widens what is configured too.
//
// Meanwhile, where completions are local and the path carries 1 GB/s or more, the window is loose as well: it counts
// local completions, and one read in 100 ms tells how fast the path is. A device completes in post order, so that
// otherwise what is behind a read completes with its answer, and a fast stream loses several percent. The first urgent
// request then waits for what lies in sockets, too, which only the kernels of both ends bound (Linux by itself: 4 MiB
// here, and 6 to 32 MiB at a peer that is slow to take it). It goes at once, a read follows it, and nothing less urgent
// does before that has its answer: what comes next waits for one window again.
//
// # Several queue pairs
//
// With [ScopeDevice] the QPs of a device, and with [ScopePeer] those to one host, share one window: the bytes of all of
// them that are as urgent or more count, and an urgent request of one makes the windows of all narrow and tight. The
// policy still chooses among the requests of each QP; between QPs, the window is what holds the less urgent back. Each
// may have one slice under way whatever the others have, so that none waits for the completions of another. A QP that
// has nothing waiting takes notice with its next post or completion.
//
// # Words
//
// Dispatch: posting to the device below what the policy picks. Mark: a request whose completion says how far the peer
// is. Drain marker: a request that completes behind all others, as ib_drain_sq(9) posts one. Cut sends are segmented
// and reassembled: a reservation is a part of the peer's ring, a descriptor says that a message is the beginning of a
// longer one, credits are what the receiver gives back, and a QP is blocked while a send waits for them. The mailbox is
// the memory that holds ring, descriptors and credits.
//
// # Progress
//
// Posting and polling move what waits. While work waits and the application does
// neither, one goroutine of the device does, within 10 ms; it is joined by Close.
//
// The tier owns the device below. One mutex guards a completion queue and the queue pairs that send into it; a worker
// should have both to itself. Nothing is allocated per request.
//
// A read that the peer refuses in its middle has placed what came before. While solicited events only are armed and
// work waits, Wait looks every millisecond, and so does who waits for the peer's ring. Each connection that cuts sends
// has its own ring. The poll that finds a cut send copies it, and what is behind it waits for that. A key that a
// request revoked is not found out while a cut send is copied. Two IDs of unsignalled requests that are equal cannot be
// told apart when one of them fails. With strict priority, saturating urgent traffic starves the rest.
package sched
