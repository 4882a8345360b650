// Package sharing is the workload of many users of one node: a queue pair for each, as a
// device alone has it, against few that all share, as LITE has them.
//
// Both ends live in this process, and one thread posts and polls for all users in turn:
// what is seen is what connections cost the device and memory, not how threads get in
// each other's way.
package sharing
