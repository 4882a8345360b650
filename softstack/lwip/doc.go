// Package lwip is lwIP's TCP/IP stack in user space as a [stream.Stack], with links to other processes: what SoftRDMA
// (APNet'17) puts below its iWARP. It is built with the tag lwip, cgo and Debian's liblwip-dev, and loads the library
// when the first stack is opened; without these [Open] says what is missing.
//
// Whoever polls a connection drives the whole stack in line, without a system call; when nobody does, one goroutine of
// the process is woken by a bell. One Send begins a segment, which Peek shows where it lies. Links of shm are rings of
// package shm; an XDP program of link xdp hands frames for our ports to an AF_XDP socket of queue 0, all else to the
// host. Indices and lengths that a peer writes are checked, but only TwoCopies keeps it from changing packets while
// lwIP parses them.
//
// lwIP's state is global: stacks share it and differ in their links. Its build limits a connection to a window of 64
// KiB, segments of 1460 bytes, timers of 500 ms and no SACK. What was sent before Close arrives within 100 s; FIN
// follows it, since lwIP 2.1.3 sets that on both parts of a segment that it splits. By reference it needs a build
// without LWIP_NETIF_TX_SINGLE_PBUF (ci/build-lwip).
package lwip
