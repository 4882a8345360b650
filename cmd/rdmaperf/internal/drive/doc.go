// Package drive holds what workloads call: ping-pong, flows one way and both, open loops, calls, and the proof of data.
//
// A loop runs on its worker's thread and owns the worker's lanes until the phase ends. It allocates nothing, and what
// can be decided before it starts is decided then. Each call outstanding is a goroutine, because calls block.
package drive
