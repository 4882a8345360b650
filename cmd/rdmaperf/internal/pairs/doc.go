// Package pairs opens both ends of a stack in one process, for workloads that have a run of their own: two devices with
// connections between them, or two nodes of LITE. Their writes are streamed by [Writes]. Both ends share the
// processors, so that a rate is of both together. A pair owns what it opened; a Writes is one goroutine's.
package pairs
