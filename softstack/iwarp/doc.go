// Package iwarp is a user-space iWARP provider: RDMAP (RFC 5040) over DDP (RFC 5041) over MPA (RFC 5044, RFC 6581) over
// a byte stream, as an rdma.Device. It needs no RDMA hardware and no privileges, and speaks to any iWARP peer.
//
// The codecs and rules live in softstack/mpa, ddp and rdmap, without I/O. This
// package joins them to sockets, registered memory and queues.
//
// # Data flow
//
//	PostSend → send queue → transmit: FPDUs (headers, small payloads and CRCs in
//	one buffer, large payloads by reference) → one sendmsg a batch
//	socket → receive: header in a staging buffer, payload of large segments
//	straight into the registered memory → deliver → completion queue
//
// # Progress
//
// Whoever polls a CQ, or waits on it, drives the sockets of its QPs in line; of the many of a CQ that is waited on,
// those that epoll reports. A QP that nobody polls is driven by the device's one background goroutine, which sleeps in
// epoll. The background goroutine keeps away from QPs whose application was active in the last watchPeriod, so that a
// spinning worker is not disturbed; the price is one delay of up to two periods when an application stops polling.
//
// A QP's state is guarded by its mutex, which the application's thread holds for one poll or post at a time. Lock
// order: QP, then SRQ or CQ. The background goroutine belongs to the device and is joined by its Close. Registered
// memory is touched only under a QP's mutex and only while the registration is valid; MR.Close passes through every
// QP's mutex, so afterwards nothing touches it.
//
// # Sending by reference
//
// A stack below that references what it sends (stream.References) reads registered memory until the peer's TCP has it.
// So a send or write completes then (Config.OnAck), and whatever completes one before, such as the end of the stream,
// has the stack release all memory first. So has MR.Close: what was sent of the region stays right. Headers, payloads
// up to copyMaxRef, what markers go into and read responses, of which the memory's owner does not know, are copied.
//
// # Deviations
//
// Large segments are placed before their CRC is known, as the data goes from the socket into its final place (RFC 5044
// §6 wants the check first). Nothing is delivered: a bad CRC ends the stream with Terminate 2/0/02 and no completion.
// Only memory that the peer may write can be hit. Config.StoreAndForward checks first and copies. Segments that arrive
// whole in one read are always checked first. For the same reason the CRC of such a segment is computed over the
// registered memory: whoever else writes there while it arrives ends the stream. Its last octet is placed when the CRC
// was right, so who watches that one may write.
//
// RFC 7306 has no start-up negotiation. Each end says what it takes in eight octets behind the private data
// (rdmap.AppendOffer); a responder does so only when the initiator did. Without that word the peer is sent nothing of
// RFC 7306: the post answers ErrNotSupported. What comes is taken from anybody (§1.1: it may simply be attempted),
// unless Config.Extensions is ExtNone.
//
// A write with immediate is an RDMA Write with Immediate Data behind it, and counts as one request here and as one
// completion at the peer. A send with immediate is an Immediate Data alone, so it carries no bytes: RFC 7306 has no
// message that does, and two of its messages would take two receives. Of the eight octets the first four are the
// immediate, as with Chelsio's adapters; what a foreign peer puts into the others is lost, because a WC has no place
// for it.
//
// Atomics are carried out when their turn to be answered comes, so that a read before one fetches the old value. They
// are atomic against each other, on whatever device of the process, and against sync/atomic of the application.
//
// With the peer-to-peer model any valid first FPDU opens the stream, whatever
// RTR was agreed: peers in the field send others (RFC 6581 §9.2).
//
// RC only. One SGE for a read's sink, because a Read Request names one STag. Messages are not interleaved: a read
// response waits behind a message already begun. The zero-length Send RTR is not offered. No MPA streaming mode before
// the Request. A siw target can fail to notice the first message of a connection, about once in 80, until more bytes
// come: siw_accept answers before TCP calls it for what arrives. An initiator here does not write again by itself, as
// package verbs does where the initiator is siw: a user whose first message is answered by nothing may write zero
// bytes, which any target takes.
package iwarp
