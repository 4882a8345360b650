// Package results describes results of connection set-up in stages.
package results
