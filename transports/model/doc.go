// Package model puts the time of an RDMA NIC with caches over the reference device:
// what such a cache costs cannot be seen on a device of software.
//
// [Wrap] takes a device that does the work at once, as package memdev does, and gives every request a time at which it
// is done. A NIC has one pipeline that takes requests in order, an LRU cache for each of keys (MPT), translations of
// pages (MTT) and queue pair contexts, a number of misses that it fetches over PCIe at once, and one link. A request
// needs at its own NIC the queue pair's context and the key and translations of its bytes, and at the other the same
// for the far end. Completions of a queue pair keep their order. Doorbell and fetch count once for each post.
//
// # Time
//
// A device has a clock of its own (rdma.Caps.Clock), in ns from its opening. What is posted is posted at that time. It
// moves when a completion is polled: nothing is polled before its time, and an empty queue moves nothing. A Poll that
// finds nothing due takes the next completion and its time with it, if no other queue of the device has one that is due
// earlier; after vainPolls of those it takes it all the same, because the others may be nobody's. A PingPong is timed
// by this clock, so that latency is the model's.
//
// Nothing depends on the host: one goroutine that drives a device against peers that do
// one-sided work, or answer in turn, gets the same figures on any machine, to the byte.
//
// # Basis
//
// The presets are fitted to what is published, by shape and not by figure: native requests fall beyond about 100 keys
// and beyond a few MB of 4-KiB pages, and those of an indirection tier with one key stay flat (LITE, SOSP'17, slides 29
// and 31, ConnectX-3, 40 Gb/s, at most about 6 requests a µs); NICs of later generations lose less with many
// connections (Storm, arXiv 1902.02411, as recalled: 83 % of the reads of 8 connections with thousands on ConnectX-3,
// 32 % on ConnectX-5). Of the defaults, 0.17 µs a request and the links are those testbeds'; 0.85 µs for a read over
// PCIe is hackingnasdaq's of 2014 (a desktop; pcie-bench, SIGCOMM'18, has 0.5 to 0.6 µs on servers); one way over the
// wire makes a ping-pong of the published 1.6 to 2.1 µs; the sizes of caches are choices that put the knees there, and
// the number of misses at once is one that makes the fall Storm's.
//
// A device owns the one below: Close closes both. Everything else as in package rdma.
//
// The processor's time is not counted, neither the application's nor a tier's: a tier that saves misses is shown at its
// best. PCIe carries payload for nothing, packets have no cost but their headers, there is no switch and no congestion.
// Receives are taken for cached, but for the queue pair's context. Several goroutines on one device, or several devices
// that aim at one, meet in the order in which the host runs them. Both ends of a connection must be of this package and
// in one process.
package model
