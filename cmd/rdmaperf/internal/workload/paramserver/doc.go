// Package paramserver is the workload of a training with one parameter server: the
// tensors of a model are pushed and pulled in every iteration, with and without
// priorities.
package paramserver
