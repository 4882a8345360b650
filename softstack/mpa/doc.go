// Package mpa holds the framing of Marker PDU Aligned Framing (RFC 5044) and
// its enhanced connection establishment (RFC 6581): the Request and Reply
// frames and what two sides conclude from them, FPDUs with pad, markers and
// CRC32c, and the cut of a received stream into ULPDUs.
//
// It stands between the TCP stream and package ddp, whose segments are the
// ULPDUs. The package does no input or output and reads no clock.
package mpa
