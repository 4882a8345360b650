// Package shmqueue is a byte stream between two processes of one machine: a net.Conn over
// a pair of queues in shared memory, one for each direction, with one producer and one
// consumer each. It is what stands between a program and a service process that does
// its RDMA for it, as mRPC has it (NSDI'23, "Remote Procedure Call as a Managed System Service").
//
// A side that waits polls for a time and then sleeps on an eventfd, which the other side
// writes only when somebody sleeps.
//
// # Ownership
//
// [Pair] makes the memory, and the files by which the other process reaches it: who passes
// them on closes them. A [Conn] owns its mapping and its eventfds until Close. All
// methods are safe for concurrent use.
//
// # Limitations
//
// Linux only (memfd, eventfd). Each side copies once. The other process is trusted with the
// bytes and with progress, not with memory: positions that it cannot have ended with are an
// error, and nothing outside the queue is ever touched. Its death shows only where its owner
// notices it and closes the Conn.
package shmqueue
