// Package drive holds what workloads call: ping-pong, flows one way and both, open loops, calls, and the proof of data.
// A loop owns its worker's lanes until the phase ends, and allocates nothing.
package drive
