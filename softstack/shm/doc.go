// Package shm joins two processes of one machine and one user by shared memory: how
// the links of TCP/IP stacks in user space meet.
//
// A listener is a Unix socket in the abstract namespace whose name has the family of links and the port, so nothing is
// left behind by a process that dies. Who dials makes the memory, a memfd that is sealed so that nobody can shrink it
// below the other's feet, and sends
//
//	magic (8) · frames a direction, big endian (4) · option, big endian (4), with the memfd
//
// The listener answers with one octet, 1. The socket stays: it says who the other one is
// (SO_PEERCRED: the same user or root), and it ends when the other process does. What
// lies in the memory, and what an octet on the socket means from then on, is the family's.
//
// Memory and socket are the caller's from the return of Knock, or from the call of admit.
//
// Linux only. The other process is trusted as far as one of the same user can be: it may
// change the memory at any time, so a family checks every index and length that it reads.
package shm
