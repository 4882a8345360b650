// Package rping speaks the protocol of librdmacm's rping(1) over any [rdma.Device]. In each ping the client sends an
// [Advert] of its source, which the server reads, and one of its sink, which the server writes; the server answers each
// by a go-ahead of 16 bytes without meaning. A disconnect between two pings is the normal end.
// Each connection has its own protection domain, CQ, QP and registrations. A client grants read of the source and write
// of the sink, a server nothing. The Device stays the caller's.
// Other than rping(1), the server always goes on and serves several clients, it echoes all bytes and not only those
// before a NUL, and every wait has a deadline. A ping is at most 65535 bytes.
package rping
