// Package grpcrdma carries byte streams, and gRPC on them, over any [rdma.Device]:
// net.Listener and net.Conn whose data path is one-sided writes.
//
// # How bytes travel
//
// Each side of a connection owns a receive ring in registered memory. The sender
// copies what fits into its registered send buffer as one record and writes it
// into the peer's ring:
//
//	header 8 | payload | zeros | trailer 1, in units of 16 bytes, never over the ring's end
//
// The reader copies the payload out and, when half the ring is consumed, writes
// its position into the sender's credit cell. A sender without credit waits, and
// goes on with as much as fits.
//
// A ring that is not watched is small at first, as is the send buffer. The next record
// of a writer that had to wait says so, the reader offers a larger ring by a control
// record, and the writer goes on there. Without bulk the way back is the same.
//
// A message that is far longer than a record need not pass through the ring: its
// receiver grants memory for it (Conn.Grant), the sender writes it there
// (Conn.Place), and the receiver takes it out of the peer's reach (Conn.Take). Both
// sides agree on that in what Write carries, as package fused does.
//
// # Arrival
//
// The receiver chooses. Where the device places the last byte of a write last
// ([rdma.FeatLastByteLast]) and the connection is polled, it watches its ring:
// the header checks itself, so that a half-placed one is never believed, the
// trailer is the last byte, and what was read is zeroed before its credit
// returns. Otherwise each record is followed by a notice: a write with immediate
// where the device has it, else a send behind the write. Only records that
// notices cover are read.
//
// # gRPC
//
// [WithRDMA] and Net.Listen turn an existing program to RDMA, with everything
// above the byte stream unchanged. Package rdmaenv does the same in two lines for programs that
// leave the device to an environment variable; grpcrdma/example has such programs.
//
// A listener takes RDMA only; a server that keeps clients without it serves a TCP
// listener, too. On providers over TCP the two need different ports.
//
// # Memory and peers
//
// The caller closes the device after the [Net]. Net.Close closes listeners and
// connections. A connection has a little memory for its life, a large ring and send
// buffer while bulk goes through it (Conn.Memory), grants until Close, and what was
// taken until it is freed.
//
// Write and Place copy every payload once into registered memory, which lies outside the
// Go heap, and readers of a stream copy it, too; what was placed they do not. There is no
// half-close. On a provider that places payload before its checksum is verified
// (softstack/iwarp), a watched ring trusts the checksum of the layer below. A peer that stops
// in the middle of a record is like a slow one: deadlines or keepalives end the wait. So does
// a peer whose machine vanished, on devices without acknowledged completions; on the others
// Config.Probe finds it.
package grpcrdma
