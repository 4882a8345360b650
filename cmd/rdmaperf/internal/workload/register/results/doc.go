// Package results describes results of what registering memory costs.
//
// # Ownership
//
// The kind is constant and shared; a detail is its result's.
//
// # Limitations
//
// Percentiles of samples that are means of a batch are those of means: the batch stands
// beside them.
package results
