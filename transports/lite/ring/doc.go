// Package ring is the arithmetic of a message ring in remote memory: the sender
// owns the tail, the receiver the head, and neither does I/O.
//
// A [Sender] reserves spans in order; several may be outstanding at once, over queue pairs
// that overtake each other. A [Receiver] takes records in any order, releases them in any
// order, and moves its head over what is released without a gap. A new head is due at the
// sender once a quarter of the ring was passed since the last time (LITE, SOSP'17, §5.1 and
// IMM_ACK_PORTION of its code).
//
// A record never runs over the end of the ring: where it would, the sender skips
// to offset 0 and the skipped bytes belong to the record. That is why one record
// takes at most 3/8 of the ring ([MaxRecord]): the last quarter may be released without the
// sender having the head, and record and skip must fit into the other three.
//
// A Sender and a Receiver belong to one goroutine each. A wrong head or a wrong record of the
// peer is an error and changes nothing. Positions are 64-bit and never wrap. The size is a
// power of two, at most 16 MiB, because an offset travels in 24 bits of immediate data.
package ring
