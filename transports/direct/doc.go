// Package direct runs workloads straight on an [rdma.Device]: one queue pair, one completion queue and one registration
// a session, and as little between op and work request as a translation needs. It is what perftest measures.
//
// A transport owns its device. A session owns its buffer, registration, queues and connection, belongs to one goroutine
// and starts none. The window bytes of an op are the device's from Post until its Done, or for an unsignaled op until a
// later Done of a send-side op. Domain 0, one element a request, no SRQ. A connection that ends while nothing is
// outstanding is noticed by Poll after some thousand empty calls, and not at all by Wait.
package direct
