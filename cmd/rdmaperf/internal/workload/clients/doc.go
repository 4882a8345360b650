// Package clients is the workload of a server's memory by the number of its clients, each of
// them a machine: rings of LITE, one for each client and port, receives of the longest
// message for each queue pair, or what a connection of calls registers.
//
// All clients live in this process, and each has sent one message when the memory is read.
// Registered memory alone is counted: what a program, a kernel driver or a NIC keeps for a
// queue pair is not known to a library. At most as many clients as a cluster of LITE takes.
package clients
