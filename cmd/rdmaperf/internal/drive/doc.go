// Package drive holds what workers do in a phase: ping-pong, streams one way and both,
// the targets of both, open loops, and calls. The engine starts them, workloads choose
// them, and no loop knows which workload it runs for.
//
// # Ownership
//
// A loop runs on its worker's thread and owns the worker's lanes until the phase ends. It
// allocates nothing, and whatever can be decided before it starts is decided then.
//
// # Limitations
//
// A loop of sessions is closed or paced, and has one window a lane. Calls block where they
// are made, so that each one outstanding is a goroutine.
package drive
