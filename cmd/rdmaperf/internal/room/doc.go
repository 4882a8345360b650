// Package room says what a workload is: a row of the table of workloads, with
// everything that tells one workload from the others on a command line.
//
// # Ownership
//
// A [Room] is data and is never written to. Its Flags are made anew for each command
// line, and belong to it; the slices of a [Common] are shared by all workloads of the
// command line and only read.
//
// # Limitations
//
// The package knows no workload. Which of them a command line means is decided by
// [Choose] from what the rows say.
package room
