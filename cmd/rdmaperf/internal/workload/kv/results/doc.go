// Package results describes results of YCSB's mixes on a store behind calls.
package results
