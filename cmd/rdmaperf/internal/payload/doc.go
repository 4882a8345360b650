// Package payload makes and compares what calls carry: sequences of which every message has a number that its first
// bytes carry, so that both sides know all of its bytes.
//
// There are 4096 messages of a sequence, and 256 where they are shorter than 8 bytes: a message that is exchanged for
// another that many behind it passes.
package payload
