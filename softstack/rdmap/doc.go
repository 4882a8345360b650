// Package rdmap holds the wire format of the RDMA Protocol (RFC 5040) with the extensions of RFC 7306: opcodes and the
// control octet, Read Request, Atomic and Immediate payloads, the Terminate message and its reasons, and the table of
// which opcode belongs on which DDP queue.
//
// It is the layer above package ddp, in whose headers the control octet and the Invalidate STag travel. The package
// does no input or output, keeps no buffer and reads no clock.
//
// Ownership: Put and Get functions work on the caller's slice and keep no reference to it. A Terminate points at the
// headers it was built from, or into the octets it was parsed from.
//
// # Where the RFCs leave a choice
//   - Version. RFC 5040 §4.1 calls RV 01 (IETF) and RV 00 (RDMA Consortium)
//     valid and leaves the rest to the negotiation below. ParseControl accepts
//     both; Control writes 01.
//   - An opcode on the wrong queue, or with the wrong T bit, has no code of its
//     own in RFC 5040. It is TermOpcode when the queue exists, and DDP's invalid
//     queue number when it does not.
//   - RFC 5040 §7.1 speaks of headers "set to zero" in a Terminate, §4.8 of
//     headers that are not present. The latter is what is written: absent, with
//     the bit clear.
//   - DDP Segment Length. RFC 5040 §4.8 has it present with D and valid with M;
//     so it is written and read when either is set. NewTerminate sets both.
//   - Terminate reason 0/0 has no code; any value in its place is accepted.
//   - RFC 7306 §5.2.1 wants masks of all ones where an operation does not use
//     them. FetchAdd and CmpSwap build such requests; the codec writes and reads
//     what it is given.
//   - An Atomic Response has 12 octets, as RFC 7306 Fig. 6 draws it; §4 says 32.
//   - RFC 7306 has no negotiation and recommends that the upper layer does it; see
//     AppendOffer. The meaning of the eight octets of Immediate Data is the upper
//     layer's as well; see Immediate.
//   - Whether the opcodes of RFC 7306 are welcome is an argument of CheckInbound.
//   - A Terminate from Linux siw without headers cannot always be told from an
//     RFC one; see ParseTerminate.
package rdmap
