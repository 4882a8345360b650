// Package netstack is gVisor's TCP/IP stack in user space as a [stream.Stack], in pure
// Go: the arm beside lwIP that shows what a stack with goroutines of its own costs
// below iWARP.
//
// It is built with the tag netstack, as gVisor is a large module; without it [Open]
// answers ErrAbsent and how to build.
//
// # Link
//
// A connection has a link and a stack of its own: two processes of one user meet as
// package shm has it, and between them lie two rings in shared memory, single producer,
// single consumer, bounded; what does not fit is dropped and counted. Both ends leave
// checksums out, as a kernel does between its own interfaces. The MTU is the dialing
// side's choice.
//
// # Progress
//
// A goroutine of the link takes frames out of the ring and hands them to netstack, whose
// own goroutines process them: that hand-over is what a message costs here, and cannot be
// configured away. While somebody polls the connection it spins, so two threads of a
// process are busy, and those that find nothing offer their CPU, which is a system call
// and counted; on two CPUs for two processes that is most of a message's time. When nobody
// polls, it sleeps until the peer rings a bell, an octet on the socket.
//
// # Ownership
//
// A link, its stack and its goroutines end after their connection: at once when the
// other process is gone or the connection was aborted, else when the peer has
// acknowledged its end, five seconds at most.
//
// # Limitations
//
// link=shm only. A frame is copied out of the ring, and its payload once more to the
// receiver. Sends copy. Buffers of a connection are netstack's, a megabyte each way,
// unless they are chosen. Linux only.
package netstack
