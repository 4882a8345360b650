// Package rping speaks the protocol of librdmacm's rping(1) over any [rdma.Device], so that foreign rdma_cm programs
// can test a stack and be tested by it.
//
// One ping moves the client's bytes to the server and back, with every kind of transfer that RDMA has:
//
//	client                                   server
//	SEND advertisement of the source  ─────►
//	                                  ◄───── RDMA READ of the source
//	                                  ◄───── SEND go-ahead
//	SEND advertisement of the sink    ─────►
//	                                  ◄───── RDMA WRITE into the sink
//	                                  ◄───── SEND go-ahead
//
// An [Advert] is 16 bytes. A go-ahead has the same 16 bytes, whose content means nothing. The client ends the run by
// disconnecting; a disconnect between two pings is the normal end, anywhere else it is a loss.
//
// # Ownership
//
// Each connection has its own protection domain, CQ, QP, registrations and mapped buffers, made before it is
// established and gone when [Ping] or the server's goroutine returns. Server gives no client any right to its memory,
// and a client grants exactly what the protocol needs: read of the source, write of the sink. The Device stays the
// caller's.
//
// # Differences from rping(1)
//
// The server goes on after a client has left and serves several at once, as rping does with -P only. It echoes all
// bytes that it read, where rping stops at the first NUL; rping's own pings have their only NUL at the end. Every wait
// has a deadline, where rping waits for ever.
//
// # Limitations
//
// A ping is at most 65535 bytes, as in rping. One connection runs one ping at a
// time: this is a test of function, its times are no benchmark.
package rping
