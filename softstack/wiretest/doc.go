// Package wiretest is a scripted iWARP peer that breaks the rules on purpose. It speaks MPA (RFC 5044, RFC 6581), DDP
// (RFC 5041) and RDMAP (RFC 5040) over a plain TCP socket, octet by octet as the script says, and judges what the other
// side answers.
//
//   - Segment is one FPDU of which single fields can be changed, Encoder puts it into
//     the stream with markers and CRC, Startup is a Request or Reply.
//   - Peer is one connection: it dials or is dialled, sends scripts and reads
//     answers. Every wait has a deadline.
//   - Reader cuts the other side's stream into FPDUs, Checker finds in it what a
//     sender must not do, whatever was done to it.
//   - Proxy puts both between two real implementations.
//
// Framing and markers are written here a second time, beside package mpa, so that a mistake there does not hide itself.
// Headers come from ddp and rdmap; vectors with octets from the RFCs keep those honest.
//
// A Segment, an Encoder, a Reader, a Checker and a Peer belong to one goroutine at a time. A Proxy owns its goroutines
// and joins them on Close. Slices in an FPDU are the caller's.
//
// TCP decides what becomes one segment on the wire: Dribble writes small pieces without Nagle, which is all a socket
// offers. The Checker follows one message at a time for each kind, so a sender that interleaves the segments of two
// Writes gets a fault. Some scripts crash unpatched kernels.
package wiretest
