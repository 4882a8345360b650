// Package iwarp is a user-space iWARP provider: RDMAP (RFC 5040) over DDP (RFC 5041) over MPA (RFC 5044, RFC 6581) over
// a byte stream, as an rdma.Device. It needs no RDMA hardware and no privileges, and speaks to any iWARP peer. RC only;
// the codecs and rules are packages mpa, ddp and rdmap.
//
// Whoever polls a CQ, or waits on it, drives the sockets of its QPs; a QP that nobody polls is driven by the device's
// one background goroutine, which keeps away for watchPeriod. Lock order: QP, then SRQ or CQ. Registered memory is
// touched only under a QP's mutex; MR.Close passes through each of them, so nothing touches it afterwards.
//
// Large segments are placed before their CRC is known (RFC 5044 §6 wants the check first), in memory that the peer may
// write, and nothing is delivered on a bad one; Config.StoreAndForward checks first and copies. RFC 7306 is offered
// behind the private data (rdmap.AppendOffer). A send with immediate carries no bytes. With the peer-to-peer model any
// valid first FPDU opens the stream (RFC 6581 §9.2). A siw target can miss a connection's first message until more
// bytes come: siw_accept answers before TCP calls it. The user may then write zero bytes.
package iwarp
