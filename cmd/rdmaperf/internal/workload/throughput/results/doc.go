// Package results describes results of streams, in one direction or in both.
package results
