// Package kinds lists the kinds of results that programs beside rdmaperf read, too: one
// package below it each. The kind of a new workload lives with the workload, whose row
// names it, and needs no place here.
package kinds
