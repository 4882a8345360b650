// Package tcp is the plain TCP baseline: the same workloads over one byte stream, by default a non-blocking kernel
// socket, with as little protocol as they allow (wire.go). Every soft path is read against it.
//
// A session belongs to one goroutine, starts none, and owns its socket and window. The window bytes of an op are the
// session's from Post until its Done; a read by the peer takes bytes of the live window at any time. Send and write are
// done when the kernel took their last byte, read when its answer has arrived; completions come in posting order.
// Nothing moves but in Post and Poll, so a target of writes and reads must poll.
//
// A message that finds no posted receive stops the reading of the socket until one is posted, so that TCP's flow
// control holds the peer back. No atomics, no call, no priority. Linux only (transports/stream).
package tcp
