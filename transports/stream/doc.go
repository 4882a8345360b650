// Package stream is the contract of a byte stream below the soft stacks and the
// plain TCP baseline: a stack that dials and listens, a connection that moves
// octets without blocking, and readiness for many of them. Kernel sockets are
// the first implementation, in this package; a TCP/IP stack in user space is
// another one, in a package of its own.
//
// The iWARP provider and the plain TCP baseline run on the same contract, so
// over one stack both pay exactly the same for their octets, and the ratio
// between them is the cost of the protocol alone. Over kernel sockets that is one
// system call a call. Raw ones are used: the thread keeps its P, because a
// spinning worker must not lose it for 200 ns of kernel work. A transfer is
// bounded by what the caller offers, so a raw call holds up a stop-the-world by
// at most one copy of that many bytes.
//
// # When a request above is done
//
// Send and Sendv copy: what they took is the stack's, the caller may write to its
// memory again, and a provider may complete the request. That is the local
// completion of iWARP (RFC 5040 §5.5: a Send completes without word from the
// peer), and the only thing kernel sockets offer without notifications.
//
// A stack that sends by reference reads the caller's memory until the peer has
// acknowledged the octets, as a retransmission needs them. Over such a stack a
// request may complete only when Unacked has passed its last octet. Its connections are
// [Referrer]s, and are told by whom they are given octets which of them stay: headers of a
// provider do not. lwIP can do that where it was built for it; as Debian builds it it
// copies whatever it is told (LWIP_NETIF_TX_SINGLE_PBUF), as kernel sockets do. A provider
// may complete in that way over any of them all the same (iwarp.Config.OnAck), which shows
// what waiting for the peer's stack costs.
//
// A Conn owns what the stack keeps for it until Close or Abort. One goroutine may
// receive and one may send at a time; callers hold their own lock. Slices are the
// caller's again on return.
//
// Linux only. No TLS, no urgent data.
package stream
