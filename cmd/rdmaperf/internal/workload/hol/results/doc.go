// Package results describes head-of-line results: small probes beside a bulk stream, in
// arms that share a QP, have two, or cut the bulk themselves.
package results
