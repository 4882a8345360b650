// Package rdmap holds the wire format of the RDMA Protocol (RFC 5040) with the
// extensions of RFC 7306: opcodes and the control octet, Read Request, Atomic
// and Immediate payloads, the Terminate message and its reasons, and the table
// of which opcode belongs on which DDP queue.
//
// It stands above package ddp, in whose headers the control octet and the
// Invalidate STag travel. The package does no input or output, keeps no buffer
// and reads no clock.
package rdmap
