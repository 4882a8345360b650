// Package stack is LITE as workloads see it: a [transports.Transport] whose sessions go through
// handles of named regions (package session), and a [transports.CallTransport] whose calls are
// LITE's own.
//
// A listener, and a server of calls, is the manager of a cluster of its own; who dials joins
// it, once for each address. All sessions and connections of a process to one address share
// that node: its registration, its queue pairs, its polling goroutine. A [Stack] owns its
// device, and a node is closed with its last session, listener, connection or server.
//
// A server of calls has a port for each mode and method, and one goroutine that polls the node
// and answers in turn. When a handler takes longer than a tick, another goroutine goes on, so
// that no call waits for it.
//
// There is no event mode, no inline data and no write with immediate. Operations of unlike
// priority of one session are not ordered: each priority has a client of its own. The polling
// goroutine of a node is the only one that the device's events wake.
package stack
