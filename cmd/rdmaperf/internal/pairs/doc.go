// Package pairs opens both ends of a stack in one process, for workloads that have a run of their own: two devices with
// connections between them, or two nodes of LITE. What they write is numbered and compared by [Proof], and streamed by
// [Writes]. Both ends share the processors, so that a rate is of both together.
//
// A pair owns what it opened; Close closes it. A Proof and a Writes are one goroutine's.
package pairs
