// Package shmqueue is a net.Conn between two processes of one machine: two queues in shared memory, each with one
// producer and one consumer. It connects a program with a service process, as in mRPC (NSDI'23).
//
// A side that waits polls for a time and then sleeps on an eventfd, which the other side writes only for a sleeper.
//
// The other process is trusted with the bytes and with progress, not with memory: impossible positions are an error.
// The caller must detect its end, and close the Conn. Linux only (memfd, eventfd).
package shmqueue
