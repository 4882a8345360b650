// Package bench writes results in the Go benchmark data format for benchstat.
package bench
