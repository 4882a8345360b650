// Package ddp holds the wire format and the receive checks of Direct Data Placement (RFC 5041), between packages mpa
// and rdmap. It does no input or output and keeps no buffer; a RecvQueue belongs to one goroutine at a time.
//
// Where the RFC leaves a choice: only the message that is due is accepted (§7.1), as MPA over TCP keeps the order. A
// zero-length untagged segment is checked like any other. Each tagged segment is checked on its own (§5.2). A ULPDU
// shorter than its header has no code in §7.2: the caller answers with MPA's 2/0/03.
package ddp
