// Package shmqueue is a byte stream between two processes of one machine: a net.Conn over a pair of queues in shared
// memory, one for each direction, with one producer and one consumer each. It connects a program with a service process
// that does its RDMA, as mRPC does (NSDI'23, "Remote Procedure Call as a Managed System Service").
//
// A side that waits polls for a time and then sleeps on an eventfd, which the other side writes only for a sleeper.
// [Pair] makes the memory, and the files by which the other process maps it; the caller closes those when they are
// passed on. All methods of a [Conn] are safe for concurrent use.
//
// The other process is trusted with the bytes and with progress, not with memory: positions that are impossible are an
// error. Its end must be detected by the caller, who closes the Conn. Linux only (memfd, eventfd).
package shmqueue
