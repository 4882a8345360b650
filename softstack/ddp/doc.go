// Package ddp holds the wire format and the receive checks of Direct Data
// Placement (RFC 5041): the tagged and untagged segment headers, the message
// sequence check of one untagged queue, the bounds check of a tagged segment,
// and the cut of a message into segments.
//
// It stands between mpa, which delivers one DDP segment at a time as a ULPDU,
// and rdmap, which owns the octets that DDP reserves for its upper layer. The
// package does no input or output, keeps no buffer and reads no clock.
//
// Ownership: every function works on the caller's slice and keeps no reference
// to it. A RecvQueue or Segmenter is a plain value that belongs to one
// goroutine at a time.
//
// # Limitations
//
//   - RecvQueue takes segments in stream order only. RFC 5041 §5.3 lets a
//     placement layer accept segments out of order, but the only LLP here is
//     MPA over TCP, which delivers in order; a segment that is not the next one
//     is therefore a protocol error and never a reordering.
//   - There is no error code for a ULPDU that is shorter than its header.
//     RFC 5041 §7.2 does not give one; the caller checks the length first and
//     chooses the code (see package rdmap).
package ddp
