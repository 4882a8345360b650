// Package results describes results of an all-reduce.
//
// # Ownership
//
// The kind is constant and shared; a detail is its result's.
//
// # Limitations
//
// A time is that of the slowest rank in each iteration.
package results
