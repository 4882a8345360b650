// Package latency describes results of a ping-pong, which have nothing that other
// results have not.
package latency
