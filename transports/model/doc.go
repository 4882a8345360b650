// Package model puts the time of an RDMA NIC with caches over the reference device. [Wrap] takes a device that does the
// work at once and gives every request a time at which it is done, in ns of a clock of its own (rdma.Caps.Clock).
//
// A NIC has one pipeline, an LRU cache each for keys, translations of pages and queue pair contexts, a number of misses
// that it fetches over PCIe at once, and one link. The clock moves when a completion is polled: nothing is polled
// before its time, and an empty queue moves nothing. Nothing depends on the host: one goroutine gets the same figures
// anywhere.
//
// A device owns the one below: Close closes both. Not modelled: the processor's time, PCIe's payload, packets beyond
// their headers, a switch, congestion. Several goroutines meet in the order in which the host runs them. Both ends of a
// connection must be of this package and in one process.
package model
