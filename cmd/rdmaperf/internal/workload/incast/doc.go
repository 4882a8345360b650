// Package incast is the workload of many clients, a thread and a connection each, that
// send to one thread of the server.
package incast
