// Package ddp holds the wire format and the receive checks of Direct Data Placement (RFC 5041): the tagged and untagged
// segment headers, the message sequence check of one untagged queue, and the bounds check of a tagged segment. How long
// the segments of a message are is the sender's choice, and not here.
//
// It is the layer between mpa, which delivers one DDP segment at a time as a ULPDU, and rdmap, which owns the octets
// that DDP reserves for its upper layer. The package does no input or output, keeps no buffer and reads no clock.
//
// Ownership: every function works on the caller's slice and keeps no reference to it. A RecvQueue is a plain value that
// belongs to one goroutine at a time.
//
// # Where the RFC leaves a choice
//   - MSN. RFC 5041 §7.1 calls every MSN with a posted buffer legal, because
//     some lower layers place out of order. MPA over TCP does not, so RecvQueue
//     accepts only the message that is due: any other MSN is ErrUntaggedMSN,
//     also when it lies beyond the posted buffers. The first segment of a new
//     message before the last one of the current message is that same error.
//   - A zero-length untagged segment is checked like any other. RFC 5041 §7.1
//     demands the checks for non-zero lengths only, but the message still
//     consumes a buffer.
//   - Tagged segments of one message need not follow each other: RFC 5041 §5.2
//     does not make the receiver verify that, and each is checked on its own.
//   - There is no error code for a ULPDU that is shorter than its header in
//     RFC 5041 §7.2. The caller checks the length first and answers with MPA's 2/0/03.
package ddp
