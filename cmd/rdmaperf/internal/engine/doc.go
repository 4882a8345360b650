// Package engine runs the points of a [Plan] between a client and a server: the control channel, phases, workers and
// their threads, clocks, pacing, pinning, and what the machine took from them. What a point does is its workload's, a
// [Runner], whose two sides talk through a [Link] and make the same [Shape] of the point.
//
//	Plan ─► Point ─► Shape ─► Group of sessions ─► worker loops ─► Session
//	Result ◄── Measurement ◄── histogram, counts, verdicts ◄── phase report
//
// A worker is one goroutine locked to its thread; it owns its sessions, its recorder and its buffers from the start
// of a phase until it is joined. Loops allocate nothing, and end by an atomic flag, a count, or a deadline held
// against clock reads that they do anyway. The garbage collector is off while a window is open; device counters and
// the usage of the process are read before and after it, on both sides. A window of several workers is from the first
// that begins to the last that ends; CPU time is that of the whole process.
package engine
