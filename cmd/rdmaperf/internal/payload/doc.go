// Package payload makes and compares what calls carry: sequences of which every message
// is a part that its first byte tells, so that both sides know all of its bytes.
//
// # Ownership
//
// A [Sequence] is written once and then only read; what Cut and Of return is part of it.
//
// # Limitations
//
// There are 256 messages of a sequence, one for each first byte.
package payload
