// Package stream is a non-blocking byte stream over a kernel TCP socket, and
// readiness for many of them.
//
// It is the one place where the soft stacks and the plain TCP baseline touch
// the kernel: both therefore pay exactly the same system calls, and the ratio
// between them is the cost of the protocol alone. Calls use raw system calls:
// the thread keeps its P, because a spinning worker must not lose it for 200 ns
// of kernel work. A transfer is bounded by what the caller offers, so a raw call
// holds up a stop-the-world by at most one copy of that many bytes.
//
// # Ownership
//
// A Conn owns its descriptor. One goroutine may receive and one may send at a
// time; callers hold their own lock. Slices are the caller's again on return.
//
// # Limitations
//
// Linux only. No TLS, no urgent data. The directory is not in the first map of
// the design: it exists because two users (softstack/iwarp, transports/tcp) must
// share the same socket code for their comparison to mean anything.
package stream
