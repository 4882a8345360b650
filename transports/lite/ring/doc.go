// Package ring is the arithmetic of a message ring in remote memory: the sender
// owns the tail, the receiver the head, and neither does I/O.
//
// A [Sender] reserves spans in order; whoever carries the bytes may have several on
// the way at once, over queue pairs that overtake each other. A [Receiver] is told
// of records in any order, releases them in any order, and moves its head over
// what is released without a gap. It says when a new head is worth telling: once a
// quarter of the ring was passed since the last time (LITE, SOSP'17, §5.1 and
// IMM_ACK_PORTION of its code).
//
// A record never runs over the end of the ring: where it would, the sender skips
// to offset 0 and the skipped bytes belong to the record. That is why one record
// takes at most 3/8 of the ring ([MaxRecord]): a sender whose records have all been
// released may still not know of the last quarter, and record and skip must fit
// into the other three.
//
// # Ownership
//
// A Sender and a Receiver belong to one goroutine each. What the peer says is
// checked: a wrong head or a wrong record is an error and changes nothing.
//
// # Limitations
//
// Positions are 64-bit and never wrap. The size is a power of two, at most 16 MiB,
// because an offset travels in 24 bits of immediate data.
package ring
