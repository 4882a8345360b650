// Package mpa holds the framing of Marker PDU Aligned Framing (RFC 5044) and its enhanced connection establishment (RFC
// 6581): the Request and Reply frames and what two sides conclude from them, FPDUs with pad, markers and CRC32c, and
// the cut of a received stream into ULPDUs.
//
// It stands between the TCP stream and package ddp, whose segments are the ULPDUs. The package does no input or output
// and reads no clock: octets go in, octets and conclusions come out, and the owner of the socket keeps the deadlines
// RFC 5044 §7.1.2 asks for.
//
// Ownership: the Append functions write to the caller's slice and return it. A Frame keeps the private data it was
// built with, and a parsed Frame points into the octets it was parsed from. A ULPDU from a Deframer belongs to the
// Deframer until the next Feed. MarkerWriter and Deframer belong to one direction of one connection and to one
// goroutine at a time.
//
// # Where the RFCs leave a choice
//   - CRC. RFC 5044 §4.4 wants CRC on unless an administrator turns it off. The
//     zero Config has it off, so that the choice is visible where it is made;
//     the owner sets Config.CRC by default. An accepting Reply repeats the
//     Request's C, which RFC 5044 does not ask for, because Linux siw looks at
//     the Reply alone.
//   - RTR. RFC 6581 §9.2 says a responder should name every option both sides
//     know. NewReply names one, so that both sides know which one opens the
//     stream and another one can be called an error. With none in common it
//     names one of its own, as the same section demands, and the initiator
//     terminates.
//   - Depths. A responder keeps its IRD whatever the initiator's ORD is; a
//     zero-length Read as RTR raises it from 0 to 1, which RFC 6581 §9.1 allows.
//     An initiator lowers its ORD to the responder's IRD without complaint,
//     down to 0. CodeInsufficientIRD is left for a responder that claims a
//     larger ORD than the IRD it was offered. The RTR itself does not count
//     against ORD.
//   - A Reply without S to a Request with S is an error when it accepts (RFC
//     6581 §10). When it refuses it is taken for what it says: nothing of the
//     enhanced data is needed any more.
//   - S with revision 1. RFC 5044 would ignore the bit as reserved, RFC 6581 §6
//     forbids the combination; it is refused.
//   - Markers. RFC 5044 §8 reserves CodeMarker for FPDUs with a valid CRC. The
//     Deframer reports a wrong marker as soon as it has it, whatever the CRC
//     would say: the lengths that follow it are not to be trusted, and waiting
//     for the CRC could wait for octets that never come. A damaged marker may
//     therefore be reported as CodeMarker instead of CodeCRC.
//   - FPDUPTR has 16 bits, but a ULPDU of 65535 octets with its markers is
//     longer. MULPDU never offers such a length with markers; the MarkerWriter
//     and the Deframer count modulo 65536 if one comes along all the same.
//   - ULPDU_Length 0 is legal for MPA, and the Deframer delivers the empty
//     ULPDU. No DDP segment is that short; the caller refuses it.
//   - Revision 0 (RDMA Consortium) and private revisions are refused.
//   - Streaming mode before MPA, RFC 5044 §7.1, is not modelled: the first octet
//     of the connection is the first octet of the Request.
//   - The Deframer works in stream order. It uses markers to check FPDU
//     boundaries, not to find them after a loss.
package mpa
