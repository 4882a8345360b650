// Package results describes results of what registering memory costs.
//
// Percentiles of samples that are means of a batch are those of means: the batch stands
// beside them.
package results
