// Package allreduce is the workload of an all-reduce: ranks, each a process, add up
// vectors of float32 with a rendezvous that registers the user's buffers.
//
// The ranks are server processes of the engine and end with the run. This process is their
// parent and no rank. All are on one machine, and share its memory bandwidth.
package allreduce
