// Package starvation is the workload of two classes on one queue pair: a high one, which
// offers a share of the capacity, and a low one, which takes what is left.
package starvation
