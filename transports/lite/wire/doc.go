// Package wire encodes what the nodes of a LITE cluster send to each other: the private
// data that joins two nodes, the immediate data of an arrival, the headers in rings
// and reply buffers, and the words that one side writes into the other's memory. It
// does no I/O; everything is big-endian except the checked words, which both sides
// read as memory.
//
// Parsers take any bytes, never panic, and fail with an error that wraps [ErrPeer].
package wire

import "errors"

// ErrPeer wraps every refusal.
var ErrPeer = errors.New("the peer does not speak this protocol")
