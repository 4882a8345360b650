// Package wiretest is a scripted iWARP peer that breaks the rules on purpose. It speaks MPA (RFC 5044, RFC 6581), DDP
// (RFC 5041) and RDMAP (RFC 5040) over a plain TCP socket, octet by octet, and judges what the other side answers.
//
// Framing and markers are written here a second time, beside package mpa, so that a mistake there does not hide itself.
// A Segment, an Encoder, a Reader, a Checker and a Peer belong to one goroutine at a time. A Proxy owns its goroutines
// and joins them on Close. Slices in an FPDU are the caller's. The Checker follows one message at a time of each kind:
// a sender that interleaves the segments of two Writes gets a fault. Some scripts crash unpatched kernels.
package wiretest
