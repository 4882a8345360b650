// Package results describes results of an all-reduce.
//
// A time is that of the slowest rank in each iteration.
package results
