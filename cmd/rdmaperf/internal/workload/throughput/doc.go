// Package throughput is the workload of streams: as many operations outstanding on each
// queue pair as its depth says, in one direction or in both at once.
package throughput
