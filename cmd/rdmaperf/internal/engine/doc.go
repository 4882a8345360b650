// Package engine runs the points of a [Plan] between a client and a server: the control channel,
// phases, workers and their threads, clocks, pacing, pinning, and what the machine took from them.
//
// A client connects to a server over a control channel (JSON lines over TCP), sends the whole plan
// once, and steps through its points. What a point does is said by its workload, a [Runner], whose
// two sides talk through a [Link]. Both make the same [Shape] of the point from the plan and what
// both stacks can do.
//
//	Plan ─► Point ─► Shape ─► Group of sessions ─► worker loops ─► Session
//	Result ◄── Measurement ◄── histogram, counts, verdicts ◄── phase report
//
// A worker is one goroutine locked to its thread; it owns its sessions, its recorder and its buffers
// from the start of a phase until it is joined. Loops are chosen before they start, allocate nothing,
// and end by an atomic flag, a count, or a deadline held against clock reads that they do anyway.
// The garbage collector is off while a window is open. Device counters and the usage of the process
// are read before a window begins and after it ends, on both sides.
//
// A window of several workers is from the first that begins to the last that ends. CPU time is that
// of the whole process; with both sides in one process it covers both.
package engine
