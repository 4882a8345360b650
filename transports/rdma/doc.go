// Package rdma is the verbs vocabulary that every provider implements and every tier, transport and conformance case
// uses. Providers (memdev, softstack/iwarp, verbs) implement [Device]; tiers take a Device and return one. The package
// imports the standard library only, does no I/O, and owns no goroutine.
//
// Memory that a device reads or writes comes from [Alloc], an [Arena] or [Foreign], lies outside the Go heap, and is
// named by address. A slice of work requests is the caller's again when PostSend or PostRecv returns. The buffers that
// a request names belong to the device until its completion is polled, or, for an unsignalled request, a later one of
// the same queue (IBTA 10.7.3.1). Objects are closed QP, then CQ and SRQ, then MR, then Device; Close is idempotent.
//
// One-sided operations complete at the target while its application never polls. [Caps].Completion says what a
// successful completion proves. Reliable connected service only: no UD or UC, no memory windows, no re-registration, no
// resize of a CQ or SRQ.
package rdma
