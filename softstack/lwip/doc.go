// Package lwip is lwIP's TCP/IP stack in user space as a [stream.Stack], with links
// to other processes: what SoftRDMA (APNet'17) puts below its iWARP.
//
// It is built with the tag lwip, cgo and the headers of Debian's liblwip-dev; the library itself is loaded when the
// first stack is opened. Without any of these [Open] says what is missing and how to get it, and refuses a library with
// other limits or structs than those of the headers. C is here, beside package verbs, because lwIP is C, its structs
// depend on its compile options, and its callbacks must not cross into Go for every packet.
//
// # Progress
//
// Whoever polls a connection drives the whole stack in line, through the raw API under lwIP's core lock: run to
// completion, no hand-over between threads. A look that finds nothing is a load from shared memory. One call a poll
// crosses into C, whatever the number of packets, and one a send. Nothing in that loop is a system call. When nobody
// polls, one goroutine of the process does, woken by a bell that the peer rings only if it was asked to. lwIP's own
// thread runs its timers.
//
// # Segments
//
// One Send or Sendv begins a segment of its own, unless the window is closed: an iWARP provider that sends one FPDU a
// call keeps FPDUs and segments aligned (RFC 5044 §5), so a receiver finds each FPDU whole where the packet lies. Peek
// shows it there.
//
// # Link shm
//
// Two processes of one user on one machine meet as package shm has it; the socket wakes a sleeper, and ends when its
// process does. In the memory are two directions of slots and rings, single producer, single consumer, bounded; what
// does not fit is dropped and counted, as a NIC does.
//
// # Link xdp
//
// An interface is shared with the host: an XDP program hands frames for our ports to an AF_XDP socket and everything
// else to the kernel, ARP too, whose table of neighbours says where frames go. Our own connections begin at port 61000,
// above the kernel's. The socket copies nothing where the driver can do that, else the kernel copies once each way;
// sending then takes a system call for what one turn sends, which is counted. The program goes with the process. A veth
// pair may lead to this machine's kernel, which leaves TCP's checksum to a device that there is none of: such segments
// get theirs here. An interface has one process and one stack's parameters at a time, and one queue, 0: a driver with
// several must steer flows there.
//
// # Threads
//
// What has just been said is SoftRDMA's model c2. With Threads c1 a packet thread serves links and sends, and
// connections are two queues to it; with Sequential lwIP's own thread gets each packet as a message, and a sender takes
// the lock of its core (LWIP_TCPIP_CORE_LOCKING): what lwIP's Sequential API costs. c3 is the provider's. Threads that
// find nothing offer their CPU, which is a system call and counted.
//
// The peer is trusted as far as a process of the same user can be: indices and lengths that it writes are checked, but
// with one copy lwIP parses packets where the peer could still change them. TwoCopies copies first.
//
// # By reference
//
// The library as Debian builds it copies what it sends, always (LWIP_NETIF_TX_SINGLE_PBUF). One built without that
// (ci/build-lwip) reads what it is not told to copy where it is, for each time that a segment is sent, so until the
// peer has acknowledged the whole segment: Unacked counts from the oldest segment that is kept, not from the peer's
// last word. Config ByReference asks for such a library, and looks at what it does rather than at headers. Detach, and
// Close, have lwIP copy what it still refers to, segment by segment; the connection goes on, and its last octets
// arrive. Each reference is a buffer more in a segment, and the link copies the chain of them into its ring: that copy
// is the wire.
//
// # The end of a connection
//
// What was sent before Close or CloseWrite arrives, however late there is room for it: the link stays for it, and over
// xdp the port of who dialed, 100 s at most, and the end of the stream follows what is unsent. It must not go with it,
// since lwIP 2.1.3 leaves the FIN on both parts of a segment that it splits for a small window; the peer would see an
// end and never the rest.
//
// # Checksums
//
// The library's own checksum adds 16 bits at a time, and took more of a full segment's time
// than the rest of TCP. The program brings its own, which the library finds first.
//
// One stack a process, because lwIP's state is global; Stack values share it and differ in what their links do.
// Connections, pollers and listeners are their users'. A link belongs to the process and ends when its last connection
// has been gone for a second.
//
// The limits of the installed build: 64 KiB of window and of send buffer a connection, segments of 1460 bytes, whatever
// the link could carry, checksums in software, timers of 500 ms (a retransmission waits 500 ms at least, if three later
// segments do not bring it on), no SACK. Sends of c1 wait in 64 slots of a connection, where they are copied. Links of
// shm carry IPv4 and IPv6, as the address that is dialed has it (segments of IPv6 are 20 octets shorter), those of xdp
// IPv4 alone. Ports of listeners are the machine's, one listener each. Buffers are not set.
package lwip
