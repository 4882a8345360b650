// Package mpa holds the framing of Marker PDU Aligned Framing (RFC 5044) and its connection establishment (RFC 6581),
// between the TCP stream and package ddp. It does no input or output and reads no clock: deadlines are the socket's
// owner's. MarkerWriter and Deframer belong to one direction of a connection and one goroutine at a time.
//
// Where the RFCs leave a choice: Config has CRC off unless it is set; a Reply repeats the Request's C, as Linux siw
// looks at that alone, and names one RTR. A zero-length Read as RTR raises IRD from 0 to 1, and CodeInsufficientIRD is
// for a responder that claims more than it was offered. A refusal without S is taken for what it says; S with revision
// 1 is refused, and so are other revisions. CodeMarker is reported before the CRC is known. FPDUPTR counts modulo
// 65536. An empty ULPDU is delivered. There is no streaming mode before MPA, and markers find no boundaries after a
// loss.
package mpa
