// Package rdma is the waist of rdmaperf: the verbs vocabulary that every
// provider implements and every tier, transport and conformance case uses.
//
// Providers (memdev, softstack/iwarp, verbs) implement [Device]. Tiers take a Device and return a Device. Everything
// above is written once, against this package, and runs on anything below it. The package imports the standard library
// only, does no I/O, and owns no goroutine.
//
// # Ownership
//
// Memory that a device reads or writes comes from [Alloc], from an [Arena], or was declared by [Foreign]: it lies
// outside the Go heap, never moves, and is named by address. Who keeps registrations longer than their users do hears
// from [Watch] of memory that goes away, and can hold it meanwhile. A slice of work requests is the caller's again when
// PostSend or PostRecv returns. The buffers that a work request names belong to the device from the post until its
// completion is polled, or, for an unsignalled request, until a later completion of the same queue is polled (IBTA
// 10.7.3.1). Inline data is copied by the post. Objects are closed QP, then CQ and SRQ, then MR, then Device; Close is
// idempotent everywhere.
//
// # Completion semantics
//
// [Caps].Completion says what a successful send-side completion proves. CompletionAck (InfiniBand, RoCE): the peer's
// device has acknowledged the message. CompletionLocal (iWARP, RFC 5040 §5.5): the message was handed to the transport;
// only a read, or a message that comes back, proves remote effect.
//
// # Progress
//
// One-sided operations complete at the target while the target's application never polls. Poll never blocks; on a
// software provider it may drive the provider's own protocol work in line.
//
// # Choices
//
// Protection domains are small handles ([PD]), because isolation between them is a MUST of RFC 5040 §8.1.1 that the
// suite has to reach; handle 0 is the device's default domain. Event mode is split in [CQ].Arm and [CQ].Wait, as
// ibv_req_notify_cq(3) and ibv_get_cq_event(3) are, so that one-shot and solicited-only notification can be stated and
// tested. Accept takes the QP.
//
// At most [MaxSGE] scatter/gather elements a work request, carried in line so that a work request holds no pointer.
// Reliable connected service only: UD and UC have no type here yet. No memory windows, no re-registration, no CQ or SRQ
// resize.
package rdma
