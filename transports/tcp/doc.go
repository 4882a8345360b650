// Package tcp is the plain TCP baseline: the same workloads over one byte stream, by default a non-blocking kernel
// socket, with as little protocol as they allow. Every soft path is read against it, so it pays one system call where a
// hand-written non-blocking C program pays one.
//
// A message is a 16-byte header and its payload (wire.go). Small payloads are copied behind their headers and leave
// with one send call a Post; large ones are gathered from the window and received straight into it.
//
// A session belongs to one goroutine and starts none. It owns its socket and its window; both end with Close. The
// window bytes of an op are the session's from Post until its Done; a read by the peer takes bytes of the window at any
// time. A listener owns the goroutines that read greetings and joins them in Close.
//
// # Completion and progress
//
// Send and write are done when the kernel took their last byte, read when its answer has arrived. Completions of one
// session come in posting order, as on an RC queue pair: a write behind an unanswered read waits for it. Nothing moves
// but in Post and Poll, so a target of writes and reads must poll.
//
// A send or write_imm that finds no posted receive stops the reading of the socket until one is posted: TCP's flow
// control then holds the peer back. Everything behind that message waits with it.
//
// No atomics and no call. One stream a session, so head-of-line blocking is part of what is measured. The peer of a
// read sends it out of its live window: a later write of the reader may show in it unless the write is fenced. Priority
// is ignored. Linux only (transports/stream).
package tcp
