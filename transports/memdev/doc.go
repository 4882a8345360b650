// Package memdev is the reference provider of [rdma.Device]: RDMA inside one process, with the semantics of a reliable
// connection as the InfiniBand specification states them (acknowledged completions, RNR, SRQ, SQD, fences), and with
// faults that can be switched on to prove that a test would see them.
//
// A [Fabric] is a private name space. Devices of one fabric reach each other by
// the addresses they listen on; fabrics never meet.
//
// # Execution
//
// There is no goroutine. PostSend moves the bytes and writes both sides' completions in line, so a one-sided operation
// never needs the target's application. Work that cannot proceed (no receive, a fence, the ORD limit, a delayed answer)
// stays queued and is taken up by whoever removes the cause: the post of a receive, or any Poll or Wait on the fabric
// once its time has come. One lock guards a fabric, which makes every operation atomic for all others, revocation
// immediate, and the order of events a function of the calls alone.
//
// Ownership is as in package rdma. A queue place is free again when its completion, or a later one of the same queue,
// has been polled, as on hardware; posting without polling ends in ErrQueueFull.
//
// # Where the specification leaves a choice
//
//   - A QP that goes to ERR by itself (Fail, a local error) tells its peer
//     nothing; the peer's next request finds no answer: StatusRetryExcErr.
//     Disconnect and Close do tell it: EventPeerDisconnect.
//   - A failed completion carries ID, Status and QPNum only; the rest is zero, so
//     that nobody learns to rely on it.
//   - LKey and RKey of one registration differ. OpLocalInv takes either.
//   - ConnParam.RNRRetry governs the sends of the side that states it.
//   - A read or atomic on a connection with ORD 0 completes with StatusLocQPOpErr.
//   - QPConfig.Access admits reads, writes and atomics; whether a key may be
//     invalidated is the registration's word alone (qp_access_flags has no such bit).
//   - SRQ.Arm with fewer receives than the limit raises the event at once.
//   - Refused requests place nothing: a write with immediate that waits for a
//     receive has not touched memory yet.
//
// Traffic of independent pairs is serialised by the fabric's lock, so the package says nothing about scaling, and
// nothing at all about a network. Listening addresses are names: no host is resolved. Time matters only for RNR
// retries, Config.ReadDelay and connection deadlines.
package memdev
