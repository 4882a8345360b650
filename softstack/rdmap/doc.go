// Package rdmap holds the wire format of the RDMA Protocol (RFC 5040) with the extensions of RFC 7306, above package
// ddp, in whose headers the control octet and the Invalidate STag travel. It does no input or output and keeps no
// buffer. A Terminate points at the headers it was built from, or into the octets it was parsed from.
//
// Where the RFCs leave a choice: an opcode on the wrong queue is TermOpcode when the queue exists, else DDP's invalid
// queue number. Headers that a Terminate lacks are absent with the bit clear; its segment length is there with M or D;
// reason 0/0 has any code. An Atomic Response has 12 octets (RFC 7306 Fig. 6; §4 says 32). The upper layer negotiates
// RFC 7306 (AppendOffer, CheckInbound) and gives Immediate Data its meaning.
package rdmap
