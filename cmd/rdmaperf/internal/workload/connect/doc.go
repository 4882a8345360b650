// Package connect is the workload of connection set-up: how long each of its stages
// takes, and how many connections a second come about.
package connect
