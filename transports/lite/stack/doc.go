// Package stack is LITE as workloads see it: a [transports.Transport] whose sessions go
// through handles of named regions, and a [transports.CallTransport] whose calls are
// LITE's own.
//
// A listener, and a server of calls, is the manager of a cluster of its own; whoever
// dials joins it, once for each address. All sessions and connections of a process to
// one address share that node: its registration, its queue pairs, its polling
// goroutine. A session's window is a published region of its end, and reads, writes and
// atomics go through the handle of the other's. A send is a one-way message into the
// ring of the session's port, from where the receiver copies it into its receive.
//
// A server of calls has a port for each mode and method, and one goroutine that polls
// the node and answers in turn. When a handler takes longer than a tick, another
// goroutine goes on, so that no call waits for it.
//
// # Ownership
//
// A [Stack] owns its device. A node is closed with its last session, listener,
// connection or server.
//
// # Limitations
//
// At most [MaxSessions] sessions of one listener at once, no event mode, no inline
// bytes, no write with immediate. A message is at most [MaxMessage] bytes, a
// session's send at most what its ring takes.
// Operations of unlike priority of one session are no sequence: each has a client of its
// own. The polling goroutine of a node is the only one that the device's events wake.
package stack
