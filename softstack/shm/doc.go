// Package shm joins two processes of one machine and one user by shared memory: how the links of TCP/IP stacks in user
// space meet. Linux only. The other process may change the memory at any time, so a family checks every index and
// length.
//
// A listener is a Unix socket in the abstract namespace, named after family and port. Who dials sends magic (8), frames
// a direction and option (4 each, big endian) with a sealed memfd; the listener answers with one octet, 1. The socket
// stays, and ends when the other process does (SO_PEERCRED: the same user or root). Memory and socket are the caller's
// from the return of Knock, or from the call of admit.
package shm
