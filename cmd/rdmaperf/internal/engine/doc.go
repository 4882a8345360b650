// Package engine runs the points of a [Plan] between a client and a server: the control channel, phases, workers and
// their threads, clocks and pacing. What a point does is its workload's, a [Runner], whose two sides talk through a
// [Link] and make the same [Shape] of the point.
//
// A worker is one goroutine locked to its thread; it owns its sessions, recorder and buffers during a phase. Loops
// allocate nothing. The garbage collector is off while a window is open; counters and the usage of the process are read
// around it, on both sides. A window of several workers is from the first that begins to the last that ends.
package engine
