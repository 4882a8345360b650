// Package verbs is the kernel's RDMA as an rdma.Device: libibverbs and librdmacm over whatever device the machine has,
// from InfiniBand and RoCE adapters to the software devices rdma_rxe and siw. It is the project's only use of cgo.
//
// # Libraries
//
// Neither library is linked: both are opened at run time, and the part of their stable ABI that is used is declared in
// abi.h, so that a Go and a C compiler are all a build needs and one binary runs with and without them. ci/abi compares
// the declarations with rdma-core's headers. Where something is missing, Open fails with rdma.ErrNoDevice and says
// what, and what to install.
//
// # Connections
//
// With [Config].CM, connections are made by rdma_cm: addresses are those of the device's network interface. Without,
// the two sides exchange their QPs' addresses over TCP and walk through INIT, RTR and RTS themselves, as perftest does;
// the TCP connection then stays open, and its end is how each side learns that the other left or died, because RoCE has
// no word for it. iWARP always uses rdma_cm.
//
// # Data path
//
// A PingPong translates its requests before it reads the clock, which is the processor's time stamp counter where the
// kernel tells time by it and else CLOCK_MONOTONIC (clock.h), and reads it again as soon as the provider has told what
// came, or the byte has changed. What that adds to the round trip that it times is a clock reading, the request's place
// in the queue and two calls: about 20 ns on a provider that does nothing (BenchmarkNullPingPong; Caps.PingPongNS has
// this machine's figure). The way into C and out lies between samples.
//
// A post or a poll is one cgo call for the whole slice and allocates nothing. Work requests go to the device under
// numbers of ours, which lead its completions back to the caller's ID; queue places are counted here, so that a queue
// that is never polled refuses work before its CQ overruns.
//
// A Device owns its context, one goroutine for asynchronous events and, with CM, one for connection events; Close joins
// them. Calls that post to one queue take turns under that queue's mutex, polls under the CQ's. Lock order: qp.mu,
// sendMu, recvMu, cq.mu. QP.Close moves the QP to ERR, collects its flushed completions into the CQ's list of
// leftovers, and only then destroys it, since devices forget the completions of a destroyed QP.
//
// # What the kernel leaves open
//
//   - A request that the device never completes, although its QP is in ERR,
//     completes flushed when the QP is closed.
//   - A device that never flushes what is posted in ERR (siw) is not told of it:
//     the requests complete flushed here, behind those that it does complete.
//   - A second completion of the same request is dropped.
//   - What arrives at a new connection of siw before its accepting side is ready is
//     noticed with what comes next: the initiator writes nothing, a few times.
//   - Software devices place what arrives with the kernel's memcpy, and promise that the
//     last byte comes last only where that goes upwards (order.go).
//   - libsiw refuses every queue that would be mapped at one certain offset. A queue
//     that is never used is put there (siw.c).
//   - siw reads the buffer of an unsignalled message of a page or more after later
//     requests have completed. It is signalled there in any case, which makes siw
//     copy it, and its completion is kept back; an armed CQ may wake for nothing, and
//     such completions take their room in the CQ until they are polled.
//   - Devices that do not tell a QP's state (siw before Linux 6.8) are believed to
//     be where this package put them, until an error completes or the peer leaves.
//   - A receive without elements is posted to iWARP devices with one of length 0:
//     libsiw refuses the other form.
//   - Rights that no operation of the device can use are left out of registrations.
//
// Reliable connections only: the waist has no type for UD or UC. Send with invalidate and local invalidate need memory
// windows or fast registration, which the waist does not have, so they are never declared. One P_Key, index 0; one
// path, no migration. siw stops listening when a TCP connection to its port ends before its worker has accepted it, as
// in a scan of the port (Linux 6.1.192); Accept then waits for its deadline. rdma_cm chooses the device by address, so
// two devices on one network interface cannot both be reached through it.
package verbs
