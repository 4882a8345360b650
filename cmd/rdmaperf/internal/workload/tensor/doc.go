// Package tensor is the workload of tensors that calls push to the server, pull from it,
// and exchange.
package tensor
