// Package text writes results and comparisons as tables for people at a terminal.
//
// Limitations: a table wider than asked for is not cut, but its columns move closer.
package text
