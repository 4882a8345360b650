// Package hol is the workload of head-of-line blocking: small probes beside a stream of
// bulk operations, on one queue pair or on one each.
package hol
