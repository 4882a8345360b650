// Package results describes results of calls: the workload rpc, calls that carry
// tensors, and what other workloads that stand on calls share with them.
package results
