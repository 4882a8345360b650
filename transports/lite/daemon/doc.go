// Package daemon lets several processes of a machine share one node of LITE, as the
// applications of LITE share its kernel: one registration, one set of queue pairs, one
// thread that polls. A [Daemon] serves a node at a Unix socket; a [Client] is what one
// goroutine of another process uses it through, and is a [lite.Access] as the client
// inside the process is.
//
// # Shared memory
//
// Each client has a place of the node's arena, which it maps (lite.Segment). In front are a
// page of words and two rings: requests, which the client writes, and their ends, which the
// daemon writes. What a client reads and writes lies behind them, so that no byte is
// copied. Names, handles, memset, memcpy, barriers and the opening of ports go over the
// socket. Bytes of a request are read while the client may change them.
//
// The crossing costs nothing where the client polls the shared page and the daemon spins
// (LITE, SOSP'17, §5.2). With [ClientConfig].Cross each request rings a doorbell and each
// end is slept for, two system calls and two wake-ups, as a kernel that is entered for each
// costs them. A request that spans chunks and finds half the room waits in the daemon's loop.
//
// # Trust
//
// A client accesses its own place and what its handles permit. The daemon copies a request
// before it checks it, checks handles against the client's own table and local bytes
// against its place, and takes no more of a client in one turn than of another. A client
// that breaks the protocol is disconnected, and what a client had is freed with it: handles,
// calls, ports, locks and its place. None of that stops the others.
//
// A place is given again only to a process of the same user: a former client may still
// have it mapped, and processes of one user can read each other anyway (ptrace(2)).
package daemon
