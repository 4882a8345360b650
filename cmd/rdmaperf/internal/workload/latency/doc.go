// Package latency is the workload of single operations: a ping-pong, one operation
// under way on each queue pair, or an open loop of operations at a given rate.
package latency
